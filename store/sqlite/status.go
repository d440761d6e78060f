package sqlite

import (
	"context"

	"leasehold/engine"
	"leasehold/store/internal/record"
)

// A state that is what was stored already writes nothing.
const sqlStatus = `INSERT INTO link_status(installation_id, epoch, state, reason, detail, since, attempts, next_attempt, last_ready, last_event)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (installation_id) DO UPDATE SET epoch = excluded.epoch, state = excluded.state, reason = excluded.reason, detail = excluded.detail,
       since = excluded.since, attempts = excluded.attempts, next_attempt = excluded.next_attempt, last_ready = excluded.last_ready, last_event = excluded.last_event
 WHERE link_status.epoch <= excluded.epoch`

// status is a set of link states in the queue.
type status struct {
	states []engine.TermStatus
	answer error
	done   chan error
}

// SaveStatus implements engine.Store. A state of an installation that does not
// ride on the term's is skipped like a fenced one.
func (s *Store) SaveStatus(ctx context.Context, states []engine.TermStatus) error {
	if len(states) == 0 {
		return nil
	}
	i := &status{states: states, done: make(chan error, 1)}
	return failed("save link states", s.c.add(ctx, i, i.done))
}

func (i *status) size() (rows, bytes int) { return len(i.states), 0 }
func (i *status) refuse(err error)        { i.answer = err }

func (i *status) settle(err error) {
	if err == nil {
		err = i.answer
	}
	i.done <- err
}

func (i *status) apply(g *group) error {
	i.answer = nil
	for _, s := range i.states {
		held, err := g.holds(s.Term)
		if err != nil {
			return err
		}
		carried, err := g.carries(s.Term.Installation, s.Status.Installation)
		if err != nil {
			return err
		}
		if !held || !carried {
			continue
		}
		l := s.Status
		id := l.Installation
		if id == "" {
			id = s.Term.Installation
		}
		_, err = g.w.exec(sqlStatus, id, s.Term.Epoch, string(l.State), l.Reason, l.Detail, record.Millis(l.Since),
			l.Attempts, record.Millis(l.NextAttempt), record.Millis(l.LastReady), record.Millis(l.LastEvent))
		if err != nil {
			return err
		}
	}
	return nil
}
