package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"leasehold/channel"
)

const (
	// acceptTimeout bounds one commit: far above the slowest healthy disk, below
	// the patience of every platform that redelivers.
	acceptTimeout = 20 * time.Second
	// cursorEvery is when a cursor without events is written at the latest.
	cursorEvery = 5 * time.Minute
)

// Accept makes a batch durable; see channel.Link.Accept.
func (t *term) Accept(ctx context.Context, b channel.Batch) error {
	if err := t.gate.pass(); err != nil {
		return fmt.Errorf("%w: %w", channel.ErrFenced, err)
	}
	heard, tooLarge, err := t.prepare(ctx, b.Events)
	if err != nil {
		return err
	}
	if len(heard) == 0 && !b.Urgent {
		if b.Cursor != nil {
			t.accepts.later(b.Cursor)
		}
		return tooLarge
	}
	if err := t.accepts.add(ctx, heard, b.Cursor); err != nil {
		return err
	}
	return tooLarge
}

// prepare encodes events and says who shall have them. What is too large is
// left out, counted and told.
func (t *term) prepare(ctx context.Context, events []channel.Event) ([]Heard, error, error) {
	heard := make([]Heard, 0, len(events))
	var tooLarge error
	for i := range events {
		e := &events[i]
		if e.ID == "" {
			return nil, nil, fmt.Errorf("event %d of a batch has no id: its channel type %s must make one", i, t.row.Type)
		}
		if len(e.Raw) > 0 && !json.Valid(e.Raw) { // bytes, then, rather than an error for ever
			e.Payload, e.Raw = append(e.Payload, e.Raw...), nil
		}
		body, err := encode(e)
		if err != nil {
			return nil, nil, fmt.Errorf("encode event %s: %w", e.ID, err)
		}
		if len(body) > t.s.o.EventLimit {
			t.s.oversized()
			t.log.WarnContext(ctx, "event too large", "event", e.ID, "bytes", len(body), "limit", t.s.o.EventLimit)
			t.s.o.Observer.Notice(t.row.ID, "event_too_large", fmt.Sprintf("event %s of %d bytes was dropped; the limit is %d", e.ID, len(body), t.s.o.EventLimit))
			tooLarge = fmt.Errorf("%w: %s has %d bytes, the limit is %d", channel.ErrTooLarge, e.ID, len(body), t.s.o.EventLimit)
			continue
		}
		h := Heard{Event: *e, Body: body, Targets: t.s.holder.Targets(t.t, e)}
		h.FollowUp, h.FollowUpUntil = t.followUp(ctx, e)
		heard = append(heard, h)
	}
	return heard, tooLarge, nil
}

// followUp seals where answers to e go for a while; nil: there is no such address, it is
// over, or it cannot be sealed.
func (t *term) followUp(ctx context.Context, e *channel.Event) ([]byte, time.Time) {
	address, now := e.FollowUp.Address.Reveal(), t.s.o.Clock.Wall()
	until := e.FollowUp.Until(now)
	if address == "" || t.s.o.Seal == nil || !until.After(now) {
		return nil, time.Time{}
	}
	return t.s.o.Seal(ctx, cmp.Or(e.Installation, t.row.ID), e.ID, address), until
}

// encode writes an event as JSON, its characters unescaped.
func encode(e *channel.Event) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// commit is one write of the store for this term.
func (t *term) commit(events []Heard, cursor []byte) error {
	if err := t.gate.pass(); err != nil {
		return fmt.Errorf("%w: %w", channel.ErrFenced, err)
	}
	ctx, cancel := context.WithTimeout(t.dead, acceptTimeout)
	defer cancel()
	got, err := t.s.store.Accept(ctx, AcceptRequest{Term: t.t, Identity: t.identity, Events: events, Cursor: cursor})
	switch {
	case err == nil:
	case errors.Is(err, ErrFenced):
		t.kill()
		t.s.mail.put(inFenced{t.row.ID, t.t.Epoch})
		return fmt.Errorf("%w: another node has %s", channel.ErrFenced, t.row.ID)
	default:
		return fmt.Errorf("%w: %w", channel.ErrStore, t.s.heard(err))
	}
	if cursor != nil {
		t.mu.Lock()
		t.cursor = cursor
		t.mu.Unlock()
	}
	if len(events) > 0 {
		t.s.noteEvent(t.row.ID)
	}
	if got.LastSeq > 0 && t.gate.pass() == nil {
		t.s.holder.Accepted(t.t, got.LastSeq)
	}
	return nil
}

// flush writes a cursor that waits, at the term's end. What Goodbye allows is
// enough for one commit.
func (t *term) flush() {
	if cursor := t.accepts.take(); cursor != nil && t.gate.pass() == nil {
		if err := t.commit(nil, cursor); err != nil && !errors.Is(err, channel.ErrFenced) {
			t.log.Warn("the last cursor was not written; the platform will repeat what came after it", "error", err)
		}
	}
}

// acceptQueue lets concurrent accepts of one term share a commit, in the order
// of their calls: whoever comes first commits for all who came meanwhile.
type acceptQueue struct {
	commit func(events []Heard, cursor []byte) error

	mu      sync.Mutex // guards what follows
	leading bool
	waiting []*pendingAccept
	idle    []byte      // a cursor without events, not yet written
	timer   *time.Timer // writes idle at the latest after cursorEvery
}

type pendingAccept struct {
	events []Heard
	cursor []byte
	done   chan error
}

// add commits, alone or with others, or returns when ctx ends; then the
// outcome is unknown.
func (q *acceptQueue) add(ctx context.Context, events []Heard, cursor []byte) error {
	q.mu.Lock()
	if cursor == nil {
		cursor = q.idle
	}
	q.idle = nil
	if !q.leading {
		q.leading = true
		q.mu.Unlock()
		err := q.commit(events, cursor)
		q.lead()
		return err
	}
	p := &pendingAccept{events, cursor, make(chan error, 1)}
	q.waiting = append(q.waiting, p)
	q.mu.Unlock()
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", channel.ErrStore, ctx.Err())
	}
}

// lead hands what has queued up to a goroutine that commits until nothing waits.
func (q *acceptQueue) lead() {
	q.mu.Lock()
	if len(q.waiting) == 0 {
		q.leading = false
		q.mu.Unlock()
		return
	}
	group := q.waiting
	q.waiting = nil
	q.mu.Unlock()
	go func() { // ends with the last of those who wait for it
		var events []Heard
		var cursor []byte
		for _, p := range group {
			events = append(events, p.events...)
			if p.cursor != nil {
				cursor = p.cursor
			}
		}
		err := q.commit(events, cursor)
		for _, p := range group {
			p.done <- err
		}
		q.lead()
	}()
}

// later keeps a cursor without events: an idle stream writes nothing.
func (q *acceptQueue) later(cursor []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.idle = cursor
	if q.timer == nil {
		q.timer = time.AfterFunc(cursorEvery, func() {
			// A cursor that is not written is read again; commit tells of a store that fails.
			if c := q.take(); c != nil {
				_ = q.add(context.Background(), nil, c)
			}
		})
	}
}

// take returns the cursor that waits, nil if none does, and stops its timer.
func (q *acceptQueue) take() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	c := q.idle
	q.idle = nil
	return c
}

// noteEvent keeps when a link last heard an event, for its status.
func (s *Supervisor) noteEvent(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.links[id]; l != nil {
		l.lastEvent = s.o.Clock.Wall().UTC()
	}
}

func (s *Supervisor) oversized() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.oversized++
}
