// Package execfake is a program that speaks the protocol of the channel type exec,
// with a platform behind it that exists in memory only.
//
// It is the other end of the protocol, written from docs/exec.md and not from the
// channel type, for our tests and for others'. It tells each event until it is
// acknowledged, in every run again, and complains about what the protocol
// forbids.
package execfake

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// Options are what the platform is like.
type Options struct {
	// Token is what the variable TOKEN of an account's program must be; nil = it does
	// not matter.
	Token func(account string) string
	// Step is told each step of the protocol, see Steps, on the goroutine that takes
	// it; nil = nobody is.
	Step func(account, step string)
}

// Server is the platform. It is safe for concurrent use.
type Server struct {
	o Options

	mu       sync.Mutex // guards accounts
	accounts map[string]*account
}

// New makes a platform without events.
func New(o Options) *Server { return &Server{o: o, accounts: map[string]*account{}} }

// account is one user of the platform. Its program is told which by "account" in
// its config.
type account struct {
	name string

	mu          sync.Mutex // guards what follows
	events      []event
	taken       int           // events that are acknowledged, from the first on
	changed     chan struct{} // closed at the next event
	connections int
	open        int
	drop        bool
	complaints  []string
	sent        []string
	answers     []Answer
}

// Answer is what the other side answered an interaction with.
type Answer struct {
	ID    string
	Ack   json.RawMessage // of the user's program; nil = deferred
	Acked bool            // its event was acknowledged before
}

type event struct {
	id   string
	line []byte
}

func (s *Server) account(name string) *account {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[name]
	if a == nil {
		a = &account{name: name, changed: make(chan struct{})}
		s.accounts[name] = a
	}
	return a
}

func (s *Server) step(account, name string) {
	if s.o.Step != nil {
		s.o.Step(account, name)
	}
}

// Push makes n messages happen and returns their ids.
func (s *Server) Push(name string, n int) []string {
	ids := make([]string, n)
	a := s.account(name)
	for i := range ids {
		a.mu.Lock()
		ids[i] = fmt.Sprintf("%s-%06d", name, len(a.events)+1)
		a.mu.Unlock()
		s.PushLine(name, ids[i], map[string]any{"event": map[string]any{
			"id": ids[i], "type": "message", "conversation": map[string]any{"id": "room"}, "text": "message " + ids[i],
			"raw": map[string]any{"n": i}, "cursor": ids[i],
		}})
	}
	return ids
}

// Press makes somebody press a button, which wants an answer at once. Messages may go to
// its follow-up address; "" = it has none.
func (s *Server) Press(name, id, followUp string) {
	e := map[string]any{
		"id": id, "type": "action", "conversation": map[string]any{"id": "room"}, "action": map[string]any{"id": "button"}, "interaction": true,
	}
	if followUp != "" {
		e["follow_up"] = map[string]any{"address": followUp}
		e["raw"] = map[string]any{"answer_to": followUp}
	}
	s.PushLine(name, id, map[string]any{"event": e})
}

// PushLine makes something happen that a program tells in a line of the caller's
// own: a value that is written as JSON, or a string that is written as it is.
func (s *Server) PushLine(name, id string, body any) {
	b := []byte(fmt.Sprint(body))
	if _, plain := body.(string); !plain {
		b, _ = json.Marshal(body) // what cannot be written is an empty line
	}
	a := s.account(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = append(a.events, event{id, append(b, '\n')})
	close(a.changed)
	a.changed = make(chan struct{})
}

// Unacked lists the events that are not acknowledged.
func (s *Server) Unacked(name string) []string {
	a := s.account(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	var ids []string
	for _, e := range a.events[a.taken:] {
		if e.id != "" {
			ids = append(ids, e.id)
		}
	}
	return ids
}

// Drop makes an account's programs end at once.
func (s *Server) Drop(name string, on bool) {
	a := s.account(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop = on
}

// Connections counts the programs of an account that were ever connected.
func (s *Server) Connections(name string) int {
	return s.account(name).count(func(a *account) int { return a.connections })
}

// Live counts the programs of an account that are connected.
func (s *Server) Live(name string) int {
	return s.account(name).count(func(a *account) int { return a.open })
}

// Complaints lists what was done that the protocol forbids.
func (s *Server) Complaints(name string) []string {
	a := s.account(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.complaints)
}

// Sent lists what was sent through an account's programs.
func (s *Server) Sent(name string) []string {
	a := s.account(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.sent)
}

// Answers lists how interactions were answered.
func (s *Server) Answers(name string) []Answer {
	a := s.account(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.answers)
}

func (a *account) count(of func(*account) int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return of(a)
}

func (a *account) drops() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.drop
}

// connect counts a program; what it returns discounts it.
func (a *account) connect() func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.connections++
	a.open++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.open--
	}
}

func (a *account) acked() int { return a.count(func(a *account) int { return a.taken }) }

func (a *account) news() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

func (a *account) after(n int) []event {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.events[n:])
}

// ack takes an acknowledgement, which is one for all events up to it. told is how
// many the program has told.
func (a *account) ack(id string, told int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := slices.IndexFunc(a.events[:told], func(e event) bool { return e.id == id })
	switch {
	case id == "" || at < 0:
		a.complaints = append(a.complaints, fmt.Sprintf("%q is acknowledged, and was not told", id))
	case at+1 > a.taken:
		a.taken = at + 1
	}
}

// answer takes the answer to an interaction; told is how many events the program has
// told.
func (a *account) answer(x Answer, told int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := slices.IndexFunc(a.events[:told], func(e event) bool { return e.id == x.ID })
	if x.Acked = at >= 0 && at < a.taken; !x.Acked {
		a.complaints = append(a.complaints, fmt.Sprintf("%q is answered before it is acknowledged", x.ID))
	}
	a.answers = append(a.answers, x)
}

func (a *account) note(sent string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = append(a.sent, sent)
}

func (a *account) complain(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.complaints = append(a.complaints, what)
}
