// Package websocketfake is a WebSocket platform for tests and for trying things
// out: numbered events per bot, each sent until it is acknowledged, a strict book
// of what the other side did, and every nasty habit that platforms have.
//
// A bot connects to /bot/NAME, with "Authorization: Bearer TOKEN" or ?token=TOKEN
// where a token is asked for. The platform says {"type":"hello"}, then sends
// {"type":"message","id":"NAME-000001",…}. It takes {"type":"ack","id":…},
// {"type":"ping"} (answered by a pong), {"type":"login","token":…},
// {"type":"subscribe",…} and {"type":"resume","after":…}, and it takes messages:
// {"type":"send","id":…,"to":…,"text":…}, answered by {"type":"sent","ref":…,"id":…}.
// What was sent can be changed by {"type":"edit","id":…,"to":…,"message":…,"text":…},
// and by delete, react and unreact; those are answered in the same way, with "error"
// where the message is unknown or not the bot's. {"type":"typing",…} is taken, too.
// An event of type action wants an answer at once: {"type":"answer","id":…,"ack":…}, or
// {"type":"working","id":…}. Everything else is noted as a violation. Config is the configuration that fits.
package websocketfake

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

// Options are the platform's rules. The zero value asks for no token and sends
// again what is not acknowledged only on the next connection.
type Options struct {
	// Token returns the token of a bot; nil asks for none.
	Token func(bot string) string
	// Login wants a login frame before the hello, instead of a header.
	Login bool
	// Retry sends an unacknowledged event again on the same connection after this,
	// then after twice as long, and so on; 0 = never.
	Retry time.Duration
	// Window is how many events may be sent and not acknowledged; 0 = no bound.
	Window int
	// Fire sends each event once and forgets it, as a platform without
	// acknowledgements does; a resume frame, or ?since=ID, sends what followed.
	Fire bool
	// PingEvery is how often the platform pings; 0 = never.
	PingEvery time.Duration
	// Patience is how long the platform waits for a frame of its own to be taken
	// before it drops the connection; 0 = 30 s.
	Patience time.Duration
	// Grace is how long a new connection waits for an older one of the same bot to
	// end before both are counted as concurrent: after a kill -9 the kernel's FIN
	// may still be on its way. 0 counts at once.
	Grace time.Duration
	// Dedupes says of which bots the platform drops the second of two messages with one
	// id, and answers it as the first; see Repeats. nil = of none.
	Dedupes func(bot string) bool
	// Acked is told of each event that is acknowledged, once.
	Acked func(bot, id string)
	// Received is told of each message that is taken.
	Received func(bot string, m Message)
	// Operated is told of each operation that is done.
	Operated func(bot string, o Operation)
	// Step is told of each step of the protocol as it happens, on the goroutine that
	// takes it; see Steps.
	Step func(bot, step string)
}

// The steps of the protocol, in the order of a connection's life.
const (
	StepDial    = "dial"    // the request has come
	StepUpgrade = "upgrade" // the answer has gone
	StepHello   = "hello"   // the hello has gone
	StepEvent   = "event"   // an event has gone
	StepAck     = "ack"     // an acknowledgement has come
	StepPing    = "ping"    // a WebSocket ping has come
	StepEnd     = "end"     // the connection is over; none of Steps, since nothing can be broken there
)

// Steps lists every step that each connection with an event passes.
func Steps() []string {
	return []string{StepDial, StepUpgrade, StepHello, StepEvent, StepAck, StepPing}
}

// Server is the platform. It is an http.Handler and safe for concurrent use.
type Server struct {
	options Options
	ctx     context.Context // the platform's own life, not a caller's: it ends with Close
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu   sync.Mutex // guards bots
	bots map[string]*bot
}

// New makes a platform that nobody can reach yet: Serve it, or use it as a handler.
func New(o Options) *Server {
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
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
		b.each(func(c *client) { c.drop() })
	}
	s.wg.Wait()
}

// Config is the type's configuration for a bot of this platform at address, such
// as "ws://127.0.0.1:8080". token is a secret reference, such as {"env": "TOKEN"};
// nil where none is asked for.
func (s *Server) Config(address, bot string, token map[string]string) json.RawMessage {
	c := map[string]any{
		"url":         strings.TrimSuffix(address, "/") + "/bot/" + bot,
		"ready_when":  map[string]any{"pointer": "/type", "equals": "hello"},
		"ignore_when": []any{map[string]any{"pointer": "/type", "equals": "pong"}},
		"ack":         `{"type":"ack","id":{{id}}}`,
		"pointers": map[string]any{
			"id": "/id", "type": "/type", "text": "/text", "conversation": "/conversation", "sender": "/sender", "time": "/time",
		},
		"send":    `{"type":"send","id":{{id}},"to":{{conversation}},"thread":{{thread}},"reply_to":{{message_id}},"text":{{text}}}`,
		"edit":    `{"type":"edit","id":{{id}},"to":{{conversation}},"message":{{message_id}},"text":{{text}}}`,
		"delete":  `{"type":"delete","id":{{id}},"to":{{conversation}},"message":{{message_id}}}`,
		"react":   `{"type":"react","id":{{id}},"to":{{conversation}},"message":{{message_id}},"text":{{text}}}`,
		"unreact": `{"type":"unreact","id":{{id}},"to":{{conversation}},"message":{{message_id}},"text":{{text}}}`,
		"typing":  `{"type":"typing","id":{{id}},"to":{{conversation}}}`,
		"answer": map[string]any{
			"id": "/ref", "message_id": "/id", "error": "/error",
			"refused_when": map[string]any{"pointer": "/error"}, "retry_when": map[string]any{"pointer": "/busy"},
		},
		"interaction": map[string]any{
			"when":   map[string]any{"pointer": "/type", "equals": "action"},
			"answer": `{"type":"answer","id":{{id}},"ack":{{ack}}}`, "working": `{"type":"working","id":{{id}}}`,
		},
		"auth_error_when": []any{map[string]any{"pointer": "/error", "equals": "invalid_token"}},
	}
	if token != nil {
		c["secrets"] = map[string]any{"token": token}
		if s.options.Login {
			c["login"] = `{"type":"login","token":{{token}}}`
		} else {
			c["headers"] = map[string]any{"Authorization": "Bearer {{token}}"}
		}
	}
	if s.dedupes(bot) {
		c["answer"].(map[string]any)["dedupes"] = true
	}
	if s.options.Fire {
		delete(c, "ack")
		c["resume"] = `{"type":"resume","after":{{cursor}}}`
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
		b = &bot{name: name, extra: map[string]int{}, theirs: map[string]*Post{}, ended: make(chan struct{})}
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

func (s *Server) dedupes(bot string) bool { return s.options.Dedupes != nil && s.options.Dedupes(bot) }

func (s *Server) step(bot, step string) {
	if s.options.Step != nil {
		s.options.Step(bot, step)
	}
}
