//go:build unix

package evidence_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"sync"
)

// program is the user's: an HTTP server that takes webhooks and keeps a book of
// them, by the id that the platform gave each event.
type program struct {
	answer func(event string) int    // 0 = 204; called under the lock
	step   func(string)              // nil = nobody counts
	says   func(event string) string // what is answered to one that is taken; nil = nothing

	mu     sync.Mutex // guards what follows
	events map[string]*webhook
	byID   map[string]string   // event by webhook id
	order  map[string][]string // events by conversation, as they were first taken
	failed map[string]bool     // events that were answered 500 on purpose
	faults []string            // what must not happen

	requests, refused, repeats int
}

// webhook is what came for one event.
type webhook struct {
	id    string
	body  uint64 // its hash
	taken int
}

func newProgram() *program {
	return &program{events: map[string]*webhook{}, byID: map[string]string{}, order: map[string][]string{}, failed: map[string]bool{}}
}

func (p *program) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.note(stepRequest)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender was killed in the middle of it
	}
	event, status := p.take(r.Header.Get("webhook-id"), body)
	if status < 300 && p.says != nil {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, p.says(event)) // its sender may be dead
	} else {
		w.WriteHeader(status)
	}
	if status < 300 {
		p.note(stepAnswer)
	}
}

func (p *program) note(step string) {
	if p.step != nil {
		p.step(step)
	}
}

// take books a webhook and returns its event and what to answer.
func (p *program) take(id string, body []byte) (event string, status int) {
	var envelope struct {
		Data struct {
			Installation struct{ ID string }
			Conversation struct{ ID string }
			Raw          struct{ ID string }
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if err := json.Unmarshal(body, &envelope); err != nil || envelope.Data.Raw.ID == "" || id == "" {
		p.fault("got a webhook %q that is no envelope: %v: %.200s", id, err, body)
		return "", http.StatusBadRequest
	}
	event = envelope.Data.Raw.ID
	hash := fnv.New64a()
	_, _ = hash.Write(body) // it never fails
	was := p.events[event]
	if was == nil {
		was = &webhook{id: id, body: hash.Sum64()}
		p.events[event] = was
	}
	if was.id != id {
		p.fault("%s came as %s and as %s, want one id", event, was.id, id)
	}
	if was.body != hash.Sum64() {
		p.fault("%s came with two bodies, want the same bytes", event)
	}
	if other, ok := p.byID[id]; ok && other != event {
		p.fault("%s stands for %s and for %s, want one event", id, other, event)
	}
	p.byID[id] = event
	if p.answer != nil {
		if status := p.answer(event); status != 0 {
			p.refused++
			return event, status
		}
	}
	if was.taken++; was.taken > 1 {
		p.repeats++
		return event, http.StatusNoContent
	}
	lane := envelope.Data.Installation.ID + " " + envelope.Data.Conversation.ID
	if before := p.order[lane]; len(before) > 0 && before[len(before)-1] > event { // ids are numbered
		p.fault("%s came after %s, want conversation %s in order", event, before[len(before)-1], lane)
	}
	p.order[lane] = append(p.order[lane], event)
	return event, http.StatusNoContent
}

func (p *program) fault(format string, args ...any) {
	if len(p.faults) < 20 { // one is enough to fail a test
		p.faults = append(p.faults, fmt.Sprintf(format, args...))
	}
}

// taken counts the events that were taken.
func (p *program) taken() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.taken > 0 {
			n++
		}
	}
	return n
}

// asked counts its requests.
func (p *program) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// lanes returns the events of each conversation in the order in which they came.
func (p *program) lanes() map[string][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string][]string{}
	for lane, events := range p.order {
		all[lane] = slices.Clone(events)
	}
	return all
}

// id returns the webhook id under which an event was taken; "" = it was not.
func (p *program) id(event string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.events[event]; e != nil && e.taken > 0 {
		return e.id
	}
	return ""
}

// complaints are what must not have happened.
func (p *program) complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.faults)
}
