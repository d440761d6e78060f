package execfake

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

// Process is what a program has of its process.
type Process struct {
	In  io.Reader
	Out io.Writer
	Env func(name string) string
}

// Self is this process.
func Self() Process { return Process{os.Stdin, os.Stdout, os.Getenv} }

// said is a line of the other side.
type said struct {
	Start *struct {
		Protocol int             `json:"protocol"`
		Config   accountConfig   `json:"config"`
		Cursor   json.RawMessage `json:"cursor"`
	} `json:"start"`
	Ack *struct {
		ID string `json:"id"`
	} `json:"ack"`
	Answer *struct {
		ID    string          `json:"id"`
		Ack   json.RawMessage `json:"ack"`
		Defer bool            `json:"defer"`
	} `json:"answer"`
	Send *struct {
		ID           string `json:"id"`
		Op           string `json:"op"`
		Conversation string `json:"conversation"`
		Text         string `json:"text"`
		FollowUp     string `json:"follow_up"`
	} `json:"send"`
	Stop *struct {
		Reason string `json:"reason"`
	} `json:"stop"`
	Ping *struct{} `json:"ping"`
}

type accountConfig struct {
	Account string `json:"account"`
}

// The exit statuses that mean something.
const (
	exitFailed = 1
	exitAuth   = 77
)

// Run is the life of one program, from its start line to its exit status.
func (s *Server) Run(p Process) (status int) {
	heard, done := make(chan said), make(chan struct{})
	defer close(done)
	go hear(p.In, heard, done) // ends with its input, or with us
	first, ok := <-heard
	if !ok || first.Start == nil {
		return exitFailed
	}
	a := s.account(first.Start.Config.Account)
	r := &run{server: s, account: a, out: p.Out, heard: heard}
	s.step(a.name, "start")
	if first.Start.Protocol != 1 {
		a.complain(fmt.Sprintf("start says protocol %d, want 1", first.Start.Protocol))
	}
	if a.drops() {
		return exitFailed
	}
	r.say("hello", map[string]any{"protocol": 1, "name": "execfake", "version": "1", "can": []string{"send", "edit"}})
	s.step(a.name, "hello")
	if s.o.Token != nil && p.Env("TOKEN") != s.o.Token(a.name) {
		r.say("status", map[string]any{"state": "refused", "text": Refusal})
		return exitAuth
	}
	r.say("ready", map[string]any{"identity": a.name})
	defer a.connect()()
	s.step(a.name, "ready")
	return r.live()
}

// Refusal are the words in which it refuses a token.
const Refusal = "the token is not valid here"

// run is a program that is connected.
type run struct {
	server  *Server
	account *account
	out     io.Writer
	heard   <-chan said
	told    int // events of the account that this run has told
	broken  bool
}

// live tells events and hears the other side until it says stop or goes.
func (r *run) live() (status int) {
	a := r.account
	r.told = a.acked()
	for {
		news := a.news()
		for _, e := range a.after(r.told) {
			r.told++
			r.write(e.line)
			r.server.step(a.name, "event")
		}
		if r.broken {
			return exitFailed
		}
		select {
		case <-news:
		case m, ok := <-r.heard:
			if !ok {
				return exitFailed
			}
			if r.answer(m) {
				return 0
			}
		}
	}
}

// answer does what a line asks for, and reports whether it was the last.
func (r *run) answer(m said) (last bool) {
	switch {
	case m.Ack != nil:
		r.account.ack(m.Ack.ID, r.told)
		r.server.step(r.account.name, "ack")
	case m.Answer != nil:
		if m.Answer.Defer == (m.Answer.Ack != nil) {
			r.account.complain("an answer that is neither an ack nor deferred, or both")
		}
		r.account.answer(Answer{ID: m.Answer.ID, Ack: m.Answer.Ack}, r.told)
	case m.Ping != nil:
		r.say("pong", struct{}{})
	case m.Send != nil:
		note := m.Send.Op + " " + m.Send.Conversation + ": " + m.Send.Text
		if m.Send.FollowUp != "" {
			note += " to " + m.Send.FollowUp
		}
		r.account.note(note)
		r.say("send_result", map[string]any{"id": m.Send.ID, "message_id": "m-" + m.Send.ID})
	case m.Stop != nil:
		return true
	default:
		r.account.complain("a line that is no message, or a second start")
	}
	return false
}

func (r *run) say(kind string, body any) {
	b, err := json.Marshal(map[string]any{kind: body})
	if err != nil {
		panic(err) // our own words
	}
	r.write(append(b, '\n'))
}

func (r *run) write(b []byte) {
	if _, err := r.out.Write(b); err != nil {
		r.broken = true
	}
}

// hear reads lines until the input ends.
func hear(in io.Reader, heard chan<- said, done <-chan struct{}) {
	defer close(heard)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var m said
		_ = json.Unmarshal(lines.Bytes(), &m) // what it is not, is complained of
		select {
		case heard <- m:
		case <-done:
			return
		}
	}
}

// Steps are the steps of the protocol, in their order.
func Steps() []string { return slices.Clone(steps) }

//nolint:gochecknoglobals // a table, never changed
var steps = []string{"start", "hello", "ready", "event", "ack"}
