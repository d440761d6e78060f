// Package ssefake is a server of server-sent events for tests and for trying things
// out: numbered events per bot, each sent to whoever asks for what follows an id, a
// strict book of what the other side did, and every nasty habit that such servers
// have.
//
// A bot asks for /bot/NAME, with "Authorization: Bearer TOKEN" or ?token=TOKEN where
// a token is asked for, and for what follows an event with Last-Event-ID. The server
// sends a comment at once and then at an interval, which ?comments=1s sets, and
// events such as
//
//	id: NAME-000001
//	data: {"type":"message","seq":1,…}
//
// Config is the configuration that fits. It speaks HTTP/1.1, chunk by chunk.
package ssefake

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options are the server's rules. The zero value asks for no token, remembers every
// event and sends them all to whoever names none.
type Options struct {
	// Token returns the token of a bot; nil asks for none.
	Token func(bot string) string
	// LiveOnly sends nothing from before the connection to a bot that names no event.
	LiveOnly bool
	// Remember is how many of the latest events can be resumed from; 0 = all. Who
	// names an older one gets what is remembered.
	Remember int
	// NoIDs leaves the id lines out.
	NoIDs bool
	// Newline ends lines: "\n", which "" stands for, "\r\n" or "\r".
	Newline string
	// Split is how many bytes of the stream a chunk holds, each written by itself;
	// 0 = an event or a comment.
	Split int
	// CommentEvery is how often a comment is sent; 0 = 15 s.
	CommentEvery time.Duration
	// Patience is how long the server waits for what it sends to be taken before it
	// drops the connection; 0 = 30 s.
	Patience time.Duration
	// Step is told of each step of the protocol as it happens, on the goroutine that
	// takes it; see Steps.
	Step func(bot, step string)
	// Asked is told of each request for the stream that is granted, with its
	// Last-Event-ID; "" = none.
	Asked func(bot, after string)
}

// The steps of the protocol, in the order of a connection's life.
const (
	StepDial    = "dial"    // the request has come
	StepAnswer  = "answer"  // the answer has gone
	StepComment = "comment" // a comment has gone, the first one right behind the answer
	StepEvent   = "event"   // an event has gone
	StepEnd     = "end"     // the connection is over; none of Steps, since nothing can be broken there
)

// Steps lists every step that each connection with an event passes.
func Steps() []string { return []string{StepDial, StepAnswer, StepComment, StepEvent} }

// Server is the server. It is an http.Handler and safe for concurrent use.
type Server struct {
	options Options
	ctx     context.Context // the server's own life, not a caller's: it ends with Close
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu   sync.Mutex // guards bots
	bots map[string]*bot
}

// New makes a server that nobody can reach yet: Serve it, or use it as a handler of
// HTTP/1.1.
func New(o Options) *Server {
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	if o.CommentEvery == 0 {
		o.CommentEvery = 15 * time.Second
	}
	if o.Newline == "" {
		o.Newline = "\n"
	}
	s := &Server{options: o, bots: map[string]*bot{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Serve serves ln until Close, and returns when nothing of it runs any more.
func (s *Server) Serve(ln net.Listener) error {
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(s.ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.Serve(ln)
	s.wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close drops every connection and waits until they have ended.
func (s *Server) Close() {
	s.mu.Lock()
	s.cancel() // under the lock: whoever entered before is waited for
	s.mu.Unlock()
	for _, b := range s.all() {
		b.each((*client).drop)
	}
	s.wg.Wait()
}

// Config is the type's configuration for a bot of this server at address, such as
// "http://127.0.0.1:8080". token is a secret reference, such as {"env": "TOKEN"};
// nil where none is asked for.
func (s *Server) Config(address, bot string, token map[string]string) json.RawMessage {
	c := map[string]any{
		"url": strings.TrimSuffix(address, "/") + "/bot/" + bot,
		"pointers": map[string]any{
			"type": "/type", "text": "/text", "conversation": "/conversation", "sender": "/sender", "time": "/time",
		},
	}
	if token != nil {
		c["secrets"] = map[string]any{"token": token}
		c["headers"] = map[string]any{"Authorization": "Bearer {{token}}"}
	}
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and maps of them
	}
	return b
}

// enter counts a request that Close waits for; false: there will be none any more.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.wg.Add(1)
	return true
}

func (s *Server) bot(name string) *bot {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bots[name]
	if b == nil {
		b = &bot{name: name, extra: map[string]int{}, asked: -1}
		s.bots[name] = b
	}
	return b
}

func (s *Server) all() []*bot {
	s.mu.Lock()
	defer s.mu.Unlock()
	bots := make([]*bot, 0, len(s.bots))
	for _, b := range s.bots {
		bots = append(bots, b)
	}
	return bots
}

func (s *Server) step(bot, step string) {
	if s.options.Step != nil {
		s.options.Step(bot, step)
	}
}
