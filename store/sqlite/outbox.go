package sqlite

import (
	"context"

	"leasehold/delivery"
)

// The fence is the group's; here stands what else must hold.
const sqlMark = `UPDATE delivery SET state = $4, attempts = max(0, attempts + $5), epoch = $6, next_attempt = $7, ended_at = $8, last_error = $9
 WHERE event_seq = $1 AND target = $2 AND lease_id = $3 AND state = 0`

// marks is a set of outcomes in the queue.
type marks struct {
	all     []delivery.Mark
	answers []error
	answer  error
	done    chan error
}

// Mark implements delivery.Outbox.
func (s *Store) Mark(ctx context.Context, all []delivery.Mark) ([]error, error) {
	if len(all) == 0 {
		return nil, nil
	}
	i := &marks{all: all, done: make(chan error, 1)}
	if err := s.c.add(ctx, i, i.done); err != nil {
		return nil, failed("mark deliveries", err)
	}
	return i.answers, nil
}

func (i *marks) size() (rows, bytes int) {
	for n := range i.all {
		r, b := i.all[n].Size()
		rows, bytes = rows+r, bytes+b
	}
	return rows, bytes
}

func (i *marks) refuse(err error) { i.answer = err }

func (i *marks) settle(err error) {
	if err == nil {
		err = i.answer
	}
	i.done <- err
}

func (i *marks) apply(g *group) error {
	i.answers, i.answer = make([]error, len(i.all)), nil
	for n := range i.all {
		marked, err := i.mark(g, &i.all[n])
		if err != nil {
			return err
		}
		if !marked {
			i.answers[n] = delivery.ErrMarkFenced
		}
	}
	return nil
}

// mark writes one outcome; false: it is not ours to write.
func (i *marks) mark(g *group, m *delivery.Mark) (bool, error) {
	held, err := g.holds(m.Term)
	if err != nil || !held {
		return false, err
	}
	count, next, ended := int64(-m.Back), int64(0), int64(0)
	if m.Count {
		count++
	}
	if m.State == delivery.Pending {
		next = g.w.now + m.Wait.Milliseconds()
	} else {
		ended = g.w.now
	}
	n, err := g.w.affected(sqlMark, m.Seq, m.Target, m.Term.Installation, int(m.State), count, m.Term.Epoch, next, ended, m.Error)
	if err != nil || n == 0 {
		return false, err
	}
	g.changed = true
	return true, reply(g, m)
}
