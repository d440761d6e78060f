package sqlite

import (
	"context"
	"fmt"

	"leasehold/engine"
	"leasehold/internal/eventid"
	"leasehold/store/internal/record"
)

const (
	sqlEvent = `INSERT INTO event(installation_id, lease_id, event_id, epoch, owner, type, conversation, thread, occurred_at, accepted_at, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (installation_id, event_id) DO NOTHING`
	sqlDelivery = `INSERT INTO delivery(event_seq, target, lease_id, epoch, webhook_id, next_attempt)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (event_seq, target) DO NOTHING`
	sqlFollowUp = `INSERT INTO follow_up(event_seq, expires_at, sealed) VALUES ($1, $2, $3)`
	// A cursor that stays where it is writes nothing.
	sqlCursor = `INSERT INTO cursor(lease_id, identity, epoch, value) VALUES ($1, $2, $3, $4)
ON CONFLICT (lease_id, identity) DO UPDATE SET epoch = excluded.epoch, value = excluded.value
 WHERE cursor.epoch <= excluded.epoch AND cursor.value <> excluded.value`
)

// accept is one batch in the queue.
type accept struct {
	req    engine.AcceptRequest
	result engine.Accepted
	answer error // to this caller alone
	done   chan error
}

// Accept implements engine.Store. An event whose installation does not ride on
// the term's refuses the batch: fault.Invalid. Nobody may change the bodies any
// more, not even after ctx has ended: they may still be waiting to be written.
func (s *Store) Accept(ctx context.Context, r engine.AcceptRequest) (engine.Accepted, error) {
	if err := s.accepting(); err != nil {
		return engine.Accepted{}, fmt.Errorf("accept for %s: %w", r.Term.Installation, err)
	}
	a := &accept{req: r, done: make(chan error, 1)}
	if err := s.c.add(ctx, a, a.done); err != nil {
		return engine.Accepted{}, fmt.Errorf("accept for %s: %w", r.Term.Installation, err)
	}
	return a.result, nil
}

func (a *accept) size() (rows, bytes int) {
	for i := range a.req.Events {
		rows += 1 + len(a.req.Events[i].Targets)
		bytes += len(a.req.Events[i].Body)
	}
	return max(1, rows), bytes
}

func (a *accept) refuse(err error) { a.answer = err }

func (a *accept) settle(err error) {
	if err == nil {
		err = a.answer
	}
	a.done <- err
}

func (a *accept) apply(g *group) error {
	a.result, a.answer = engine.Accepted{}, nil
	t := a.req.Term
	runs, err := g.runs(t)
	if err != nil {
		return err
	}
	if !runs {
		a.answer = engine.ErrFenced
		return nil
	}
	for i := range a.req.Events {
		id := a.req.Events[i].Event.Installation
		carried, err := g.carries(t.Installation, id)
		if err != nil {
			return err
		}
		if !carried {
			a.answer = notCarried(t.Installation, id)
			return nil
		}
	}
	for i := range a.req.Events {
		if err := a.insert(g, &a.req.Events[i]); err != nil {
			return err
		}
	}
	if a.req.Cursor == nil {
		return nil
	}
	_, err = g.w.exec(sqlCursor, t.Installation, a.req.Identity, t.Epoch, a.req.Cursor)
	return err
}

// insert stores one event with its deliveries, or counts it as known.
func (a *accept) insert(g *group, h *engine.Heard) error {
	t, e := &a.req.Term, &h.Event
	installation, body := e.Installation, h.Body
	if installation == "" {
		installation = t.Installation
	}
	if body == nil {
		body = []byte{} // the driver makes NULL of nil
	}
	res, err := g.w.exec(sqlEvent, installation, t.Installation, e.ID, t.Epoch, t.Owner, e.Type,
		e.Conversation.ID, e.Thread, record.Millis(e.Time), g.w.now, body)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err != nil {
		return err
	}
	if n == 0 {
		a.result.Duplicates++
		return nil
	}
	seq, err := res.LastInsertId()
	if err != nil {
		return err
	}
	a.result.LastSeq, g.changed = seq, true
	for _, target := range h.Targets {
		_, err := g.w.exec(sqlDelivery, seq, target, t.Installation, t.Epoch, eventid.NewWebhook(seq), g.w.now)
		if err != nil {
			return err
		}
	}
	if h.FollowUp != nil {
		_, err = g.w.exec(sqlFollowUp, seq, record.Millis(h.FollowUpUntil), h.FollowUp)
	}
	return err
}
