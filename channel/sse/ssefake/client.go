package ssefake

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// client is one connection of a bot: serve sends, listen waits for its end.
type client struct {
	server *Server
	bot    *bot
	how    Behaviour
	tcp    net.Conn

	poke     chan struct{} // holds one: look for something to send
	tasks    chan func()   // what serve shall do next
	over     chan struct{} // the connection has ended
	once     sync.Once
	mute     atomic.Bool
	answered bool // serve's

	// guarded by bot.mu
	record *Connection
	next   int // the first event that was not sent yet
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
		refuse(w, r, how)
		return
	case s.options.Token != nil && bearer(r) != s.options.Token(name):
		http.Error(w, "invalid token "+bearer(r), http.StatusUnauthorized) // some servers do repeat it
		return
	}
	b.check(r)
	tcp, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "this server speaks HTTP/1.1", http.StatusHTTPVersionNotSupported)
		return
	}
	_ = tcp.SetDeadline(time.Time{}) // the request's
	c := &client{server: s, bot: b, how: how, tcp: tcp, poke: make(chan struct{}, 1), tasks: make(chan func(), 64), over: make(chan struct{})}
	after := r.Header.Get("Last-Event-ID")
	b.enter(c, after)
	defer s.step(name, StepEnd)
	defer b.leave(c)
	defer c.drop()
	if s.ctx.Err() != nil {
		return
	}
	if s.options.Asked != nil {
		s.options.Asked(name, after)
	}
	s.wg.Go(func() { c.listen(rw.Reader) })
	c.serve(r.URL.Query().Get("comments"))
}

func bearer(r *http.Request) string {
	if token := r.URL.Query().Get("token"); token != "" {
		return token
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

func refuse(w http.ResponseWriter, r *http.Request, how Behaviour) {
	for name, value := range map[string]string{"Retry-After": how.RetryAfter, "Location": how.Location, "Content-Type": "text/plain"} {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(how.Status)
	if how.Status != http.StatusNoContent {
		_, _ = w.Write([]byte(how.Body))
	}
	if how.HalfBody {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// check notes what the standard wants of a request and does not find.
func (b *bot) check(r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		b.violate("asked with Accept %q", r.Header.Get("Accept"))
	}
	if e := r.Header.Get("Accept-Encoding"); e != "identity" {
		b.violate("asked for a compressed stream: Accept-Encoding %q", e)
	}
	if r.Header.Get("Cache-Control") == "" {
		b.violate("asked a cache")
	}
	all := r.Header.Values("Last-Event-ID")
	if len(all) == 0 {
		return
	}
	b.mu.Lock()
	i, asked := b.index(all[0]), b.asked
	sent := i >= 0 && b.items[i].sends > 0
	b.mu.Unlock()
	switch {
	case len(all) > 1 || all[0] == "":
		b.violate("asked with Last-Event-ID %q", all)
	case !sent:
		b.violate("asked for what follows %q, which was never sent", all[0])
	case i < asked:
		b.violate("asked for what follows %q, and for something later before", all[0])
	}
}

// listen waits for the end of the connection; a client has nothing more to say.
func (c *client) listen(r *bufio.Reader) {
	defer c.ended()
	if b, err := r.ReadByte(); err == nil {
		c.bot.violate("said %q behind the request", b)
		_, _ = io.Copy(io.Discard, r)
	}
}

// serve sends events until the connection ends.
func (c *client) serve(wish string) {
	if !c.how.Late {
		c.answer()
	}
	if c.how.Drop {
		_ = c.tcp.Close() // no reset, which would take the answer with it
		return
	}
	ticker := time.NewTicker(c.wait(wish))
	defer ticker.Stop()
	if c.answered {
		c.comment()
	}
	for {
		c.sendEvents()
		if c.how.End {
			c.end()
		}
		select {
		case <-c.over:
			return
		case f := <-c.tasks:
			f()
		case <-c.poke:
		case <-ticker.C:
			if c.answered {
				c.comment()
			}
		}
	}
}

// answer sends the head of the answer, and the retry line.
func (c *client) answer() {
	kind := c.how.Type
	if kind == "" {
		kind = "text/event-stream; charset=utf-8"
	}
	head := "HTTP/1.1 200 OK\r\nContent-Type: " + kind + "\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n"
	if c.how.Encoding != "" {
		head += "Content-Encoding: " + c.how.Encoding + "\r\n"
	}
	c.write([]byte(head + "\r\n"))
	c.answered = true
	c.server.step(c.bot.name, StepAnswer)
	if c.how.Retry != "" {
		c.send([]byte("retry: " + c.how.Retry + c.server.options.Newline))
	}
}

func (c *client) comment() {
	if !c.how.NoComments {
		c.send([]byte(": still here" + c.server.options.Newline))
		c.server.step(c.bot.name, StepComment)
	}
}

func (c *client) sendEvents() {
	for !c.mute.Load() && !c.isOver() {
		e, ok := c.pick()
		if !ok {
			return
		}
		if !c.answered {
			c.answer()
		}
		if c.server.options.NoIDs {
			e.ID = ""
		}
		c.send(e.write(c.server.options.Newline))
		c.server.step(c.bot.name, StepEvent)
	}
}

// pick takes the next event to send, and books it as sent.
func (c *client) pick() (Event, bool) {
	b := c.bot
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.next >= len(b.items) {
		return Event{}, false
	}
	i := c.next
	c.next++
	b.items[i].sends++
	c.record.Sent++
	return b.event(i), true
}

// send writes bytes of the stream, in chunks.
func (c *client) send(b []byte) {
	size := c.server.options.Split
	if size <= 0 {
		size = len(b)
	}
	for len(b) > 0 && !c.mute.Load() && !c.isOver() {
		n := min(size, len(b))
		c.write(fmt.Appendf(nil, "%x\r\n%s\r\n", n, b[:n]))
		b = b[n:]
	}
}

func (c *client) write(b []byte) {
	_ = c.tcp.SetWriteDeadline(time.Now().Add(c.server.options.Patience))
	if _, err := c.tcp.Write(b); err != nil {
		c.drop()
	}
}

func (c *client) raw(b []byte) {
	c.mute.Store(true) // whatever else was sent would be in the middle of it
	c.write(b)
}

// end ends the stream in good order, and the connection with it.
func (c *client) end() {
	c.write([]byte("0\r\n\r\n"))
	_ = c.tcp.Close()
	c.ended()
}

// drop resets the connection.
func (c *client) drop() {
	if l, ok := c.tcp.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0)
	}
	_ = c.tcp.Close()
	c.ended()
}

func (c *client) ended() { c.once.Do(func() { close(c.over) }) }

func (c *client) isOver() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

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
