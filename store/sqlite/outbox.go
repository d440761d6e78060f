package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"leasehold/delivery"
	"leasehold/internal/eventid"
	"leasehold/store/internal/record"
)

const (
	sqlPending = `SELECT d.event_seq AS seq, d.target, e.installation_id AS installation, e.conversation, e.thread, e.type,
       d.webhook_id, d.attempts, d.next_attempt, e.accepted_at, d.replay
  FROM delivery d JOIN event e ON e.seq = d.event_seq
 WHERE d.state = 0 AND d.lease_id = $1 AND (d.event_seq, d.target) > ($2, $3)
 ORDER BY d.event_seq, d.target LIMIT $4`
	sqlEventsOf = `SELECT e.seq, e.installation_id AS installation, coalesce(i.type, '') AS channel_type, coalesce(i.labels, '{}') AS labels,
       e.accepted_at, e.body
  FROM event e LEFT JOIN installation i ON i.id = e.installation_id
 WHERE e.seq IN (SELECT value FROM json_each($1))`
	// The fence is the group's; here stands what else must hold.
	sqlMark = `UPDATE delivery SET state = $4, attempts = max(0, attempts + $5), epoch = $6, next_attempt = $7, ended_at = $8, last_error = $9
 WHERE event_seq = $1 AND target = $2 AND lease_id = $3 AND state = 0`
)

// Pending implements delivery.Outbox. It scans row by row: reflection would be a
// third of what a row of a backlog costs.
func (r *reads) Pending(ctx context.Context, lease string, afterSeq int64, afterTarget string, limit int) (items []delivery.Item, err error) {
	defer func() {
		if err != nil {
			items, err = nil, failed("list what waits for "+lease, r.kind(err))
		}
	}()
	rows, err := r.db.QueryContext(ctx, sqlPending, lease, afterSeq, afterTarget, limit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	items = []delivery.Item{}
	var d delivery.Item // one for all rows: what is scanned into escapes
	var next, accepted, replay int64
	for rows.Next() {
		err := rows.Scan(&d.Seq, &d.Target, &d.Installation, &d.Conversation, &d.Thread, &d.Type, &d.WebhookID, &d.Attempts, &next, &accepted, &replay)
		if err != nil {
			return nil, err
		}
		d.NextAttempt, d.AcceptedAt, d.Replay = record.Time(next), record.Time(accepted), replay != 0
		items = append(items, d)
	}
	return items, rows.Err()
}

// Payloads implements delivery.Outbox.
func (r *reads) Payloads(ctx context.Context, seqs []int64) (events []delivery.Event, err error) {
	list, err := json.Marshal(seqs)
	if err != nil {
		return nil, failed("read events", err)
	}
	rows, err := r.db.QueryContext(ctx, sqlEventsOf, string(list))
	if err != nil {
		return nil, failed("read events", r.kind(err))
	}
	defer func() {
		if err = errors.Join(err, rows.Close()); err != nil {
			events, err = nil, failed("read events", r.kind(err))
		}
	}()
	return scanEvents(rows, make([]delivery.Event, 0, len(seqs)))
}

func scanEvents(rows *sql.Rows, events []delivery.Event) ([]delivery.Event, error) {
	var e delivery.Event // one for all rows: what is scanned into escapes
	var labels string
	var accepted int64
	for rows.Next() {
		e = delivery.Event{}
		if err := rows.Scan(&e.Seq, &e.Installation, &e.ChannelType, &labels, &accepted, &e.Body); err != nil {
			return nil, err
		}
		e.ID, e.AcceptedAt = eventid.Event(e.Seq), record.Time(accepted)
		if labels != "{}" {
			if err := json.Unmarshal([]byte(labels), &e.Labels); err != nil {
				return nil, fmt.Errorf("labels of %s: %w", e.Installation, err)
			}
		}
		events = append(events, e)
	}
	return events, rows.Err()
}

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

func (i *marks) size() (rows, bytes int) { return len(i.all), 0 }
func (i *marks) refuse(err error)        { i.answer = err }

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
	if n > 0 {
		g.changed = true
	}
	return n > 0, err
}
