package websocketfake

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// client is one connection of a bot: serve sends, listen hears.
type client struct {
	server *Server
	bot    *bot
	how    Behaviour
	ws     *websocket.Conn
	tcp    net.Conn

	poke  chan struct{} // holds one: look for something to send
	tasks chan func()   // what serve shall do next
	over  chan struct{} // the connection has ended
	once  sync.Once
	mute  atomic.Bool
	code  atomic.Int64 // of the close frame that came; -1 = none

	// guarded by bot.mu
	record  *Connection
	next    int               // the first event that was not looked at yet
	unacked int               // sent here last, and not acknowledged
	flight  map[int]time.Time // with Retry: when to send again
}

// ServeHTTP serves /bot/NAME.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		http.Error(w, "closing", http.StatusServiceUnavailable)
		return
	}
	defer s.wg.Done()
	name, ok := strings.CutPrefix(r.URL.Path, "/bot/")
	if !ok || name == "" || strings.Contains(name, "/") {
		http.NotFound(w, r)
		return
	}
	b := s.bot(name)
	s.step(name, StepDial)
	how := b.behave()
	switch {
	case how.Stall:
		<-r.Context().Done() // the client has gone, or the server closes
		return
	case how.Status != 0:
		if how.RetryAfter != "" {
			w.Header().Set("Retry-After", how.RetryAfter)
		}
		http.Error(w, how.Body, how.Status)
		return
	case !s.options.Login && s.options.Token != nil && bearer(r) != s.options.Token(name):
		http.Error(w, "invalid token "+bearer(r), http.StatusUnauthorized) // some servers do repeat it
		return
	}
	c := &client{
		server: s, bot: b, how: how, poke: make(chan struct{}, 1), tasks: make(chan func(), 64), over: make(chan struct{}), flight: map[int]time.Time{},
	}
	c.code.Store(-1)
	tap := &tapped{ResponseWriter: w, client: c}
	ws, err := websocket.Accept(tap, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, Subprotocols: []string{"fake"}, OnPingReceived: c.onPing,
	})
	if err != nil {
		return
	}
	ws.SetReadLimit(1 << 20)
	c.ws = ws
	b.enter(c, bearer(r), s.options.Grace)
	defer s.step(name, StepEnd)
	defer func() { b.leave(c, int(c.code.Load())) }()
	defer c.drop()
	if s.ctx.Err() != nil {
		return
	}
	s.step(name, StepUpgrade)
	if how.Drop {
		_ = c.tcp.Close() // no reset, which would take the upgrade's answer with it
		return
	}
	c.serve(r)
}

func bearer(r *http.Request) string {
	if token := r.URL.Query().Get("token"); token != "" {
		return token
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// tapped hands out the TCP connection, which garbage is written to and a reset
// comes from.
type tapped struct {
	http.ResponseWriter
	client *client
}

// Hijack is http.Hijacker's.
func (t *tapped) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(t.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take over the connection: %w", err)
	}
	t.client.tcp = c
	return c, rw, nil
}

// drop resets the connection.
func (c *client) drop() {
	c.once.Do(func() { close(c.over) })
	if l, ok := c.tcp.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
	if c.tcp != nil {
		_ = c.tcp.Close()
	}
	if c.ws != nil {
		_ = c.ws.CloseNow()
	}
}

func (c *client) silence() { c.mute.Store(true) }

func (c *client) wake() {
	select {
	case c.poke <- struct{}{}:
	default: // it looks anyway
	}
}

// do has serve do something, or drops it when the connection is over.
func (c *client) do(f func()) {
	select {
	case c.tasks <- f:
	case <-c.over:
	}
}

func (c *client) onPing(context.Context, []byte) bool {
	c.bot.mu.Lock()
	c.record.Pings++
	c.record.Heard = time.Now()
	c.bot.mu.Unlock()
	c.server.step(c.bot.name, StepPing)
	return !c.how.NoPong && !c.mute.Load()
}

func (c *client) say(b []byte)      { c.send(websocket.MessageText, b) }
func (c *client) sayBytes(b []byte) { c.send(websocket.MessageBinary, b) }

func (c *client) send(kind websocket.MessageType, b []byte) {
	if c.mute.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(c.server.ctx, c.server.options.Patience)
	defer cancel()
	if err := c.ws.Write(ctx, kind, b); err != nil {
		c.drop()
	}
}

func (c *client) raw(b []byte) {
	c.mute.Store(true) // whatever else was sent would be in the middle of it
	_, _ = c.tcp.Write(b)
}

// closeWith sends a close frame; listen hears the answer.
func (c *client) closeWith(code int, reason string) {
	c.server.wg.Go(func() { // it waits for the answer
		_ = c.ws.Close(websocket.StatusCode(code), reason)
		c.drop()
	})
}

// closeCode is the code of a close frame that ended a read, -1 without one.
func closeCode(err error) int64 {
	if ce, ok := errors.AsType[websocket.CloseError](err); ok {
		return int64(ce.Code)
	}
	return -1
}
