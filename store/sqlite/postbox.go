package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"leasehold/channel"
	"leasehold/delivery/outbound"
)

const (
	sqlLaden    = `SELECT DISTINCT lease_id FROM message INDEXED BY message_waiting WHERE state < 2 ORDER BY lease_id`
	sqlOutgoing = `SELECT m.seq, m.id, m.installation_id AS installation, coalesce(i.type, '') AS channel_type, m.conversation, m.state, m.attempts,
       m.next_attempt, m.expires_at, CASE m.op WHEN 'edit' THEN m.message_id ELSE '' END AS edits
  FROM message m INDEXED BY message_waiting LEFT JOIN installation i ON i.id = m.installation_id
 WHERE m.state < 2 AND m.lease_id = $1 AND m.seq > $2 ORDER BY m.seq LIMIT $3`

	// With the message of ours that it names, and the follow-up address of the event that it answers, while it is good, and in that
	// event's conversation only.
	sqlTakeUp = `SELECT m.state, m.epoch, m.expires_at, m.id, m.installation_id, m.op, m.conversation, m.thread, m.message_id, m.body, m.receipt, coalesce(e.event_id, ''), f.sealed, coalesce(o.state, -1), coalesce(o.receipt, '')
  FROM message m LEFT JOIN event e ON m.event_seq <> 0 AND e.seq = m.event_seq AND e.installation_id = m.installation_id AND e.conversation = m.conversation
  LEFT JOIN follow_up f ON f.event_seq = e.seq AND f.expires_at > $3
  LEFT JOIN message o ON o.id = m.message_id AND o.installation_id = m.installation_id
 WHERE m.seq = $1 AND m.lease_id = $2`
	sqlBegin = `UPDATE message SET state = 1, epoch = $2, next_attempt = 0 WHERE seq = $1`
	// From is 0 for what expires and 1 for what was sent or not. What may have been
	// sent before does not expire: it is unknown, or refused when a part of it was. A
	// part that was sent is no doubt any more.
	sqlEnd = `UPDATE message SET state = CASE WHEN $4 <> 4 THEN $4 WHEN doubt = 1 THEN 5 WHEN receipt <> '' THEN 3 ELSE 4 END, epoch = $5,
       attempts = attempts + $6, next_attempt = $7, last_error = CASE WHEN $4 = 4 AND doubt = 0 AND receipt <> '' THEN $13 ELSE $8 END,
       receipt = CASE $9 WHEN '' THEN receipt ELSE $9 END, ended_at = $10, doubt = CASE WHEN $4 = 0 AND $9 <> '' THEN 0 ELSE max(doubt, $11) END,
       body = coalesce($12, body)
 WHERE seq = $1 AND lease_id = $2 AND state = $3`
)

// Laden implements outbound.Postbox.
func (s *Store) Laden(ctx context.Context) ([]string, error) {
	var leases []string
	if err := s.db.SelectContext(ctx, &leases, sqlLaden); err != nil {
		return nil, failed("list leases with messages", s.judge(err))
	}
	return leases, nil
}

// Outgoing implements outbound.Postbox.
func (s *Store) Outgoing(ctx context.Context, lease string, after int64, limit int) ([]outbound.Item, error) {
	var rows []struct {
		Seq              int64
		ID, Installation string
		ChannelType      string `db:"channel_type"`
		Conversation     string
		Edits            string
		State, Attempts  int
		NextAttempt      int64 `db:"next_attempt"`
		ExpiresAt        int64 `db:"expires_at"`
	}
	if err := s.db.SelectContext(ctx, &rows, sqlOutgoing, lease, after, limit); err != nil {
		return nil, failed("list messages of "+lease, s.judge(err))
	}
	now := s.millis()
	span := func(until int64) time.Duration { return time.Duration(max(until-now, 0)) * time.Millisecond }
	items := make([]outbound.Item, 0, len(rows))
	for _, m := range rows {
		items = append(items, outbound.Item{
			Seq: m.Seq, ID: m.ID, Installation: m.Installation, ChannelType: m.ChannelType, Conversation: m.Conversation, Edits: m.Edits,
			State: outbound.State(m.State), Attempts: m.Attempts, Due: span(m.NextAttempt), Left: span(m.ExpiresAt),
		})
	}
	return items, nil
}

// letter is one write of a message in the queue: do returns the answer to its
// caller alone, and an error of the database.
type letter struct {
	bytes  int
	do     func(*group) (answer, err error)
	answer error
	done   chan error
}

// write makes one write of a message, sharing its commit.
func (s *Store) write(ctx context.Context, bytes int, do func(*group) (answer, err error)) error {
	l := &letter{bytes: bytes, do: do, done: make(chan error, 1)}
	return s.c.add(ctx, l, l.done)
}

func (l *letter) size() (rows, bytes int) { return 1, l.bytes }
func (l *letter) refuse(err error)        { l.answer = err }

func (l *letter) settle(err error) {
	if err == nil {
		err = l.answer
	}
	l.done <- err
}

func (l *letter) apply(g *group) (err error) {
	l.answer, err = l.do(g)
	return err
}

// BeginSending implements outbound.Postbox.
func (s *Store) BeginSending(ctx context.Context, t channel.Term, seq int64) (outbound.TakenUp, error) {
	var m outbound.TakenUp
	err := s.write(ctx, 0, func(g *group) (answer, err error) {
		held, err := g.holds(t)
		if err != nil || !held {
			return outbound.ErrFenced, err
		}
		var state outbound.State
		var named outbound.Named
		var epoch, expires int64
		var body, receipt []byte
		err = g.w.get(sqlTakeUp, []any{seq, t.Installation, g.w.now}, &state, &epoch, &expires, &m.ID, &m.Installation, &m.Op, &m.Conversation, &m.Thread, &m.MessageID,
			&body, &receipt, &m.Event, &m.Sealed, &named.State, &named.Receipt)
		m.Named = nil
		if err == nil && named.State >= 0 {
			m.Named = &named
		}
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return outbound.ErrSettled, nil
		case err != nil:
			return nil, err
		case state == outbound.Sending && epoch == t.Epoch: // its answer was lost
			return errors.Join(outbound.DecodeBody(body, &m.Letter), outbound.DecodeProgress(receipt, &m.Letter)), nil
		case state != outbound.Queued:
			return outbound.ErrSettled, nil
		case expires <= g.w.now:
			_, err := end(g, outbound.End{Term: t, Seq: seq, State: outbound.Expired})
			return outbound.ErrExpired, err
		}
		if err := errors.Join(outbound.DecodeBody(body, &m.Letter), outbound.DecodeProgress(receipt, &m.Letter)); err != nil {
			return err, nil
		}
		_, err = g.w.exec(sqlBegin, seq, t.Epoch)
		return nil, err
	})
	if err != nil {
		return outbound.TakenUp{}, failed("begin to send", err)
	}
	return m, nil
}

// EndSending implements outbound.Postbox.
func (s *Store) EndSending(ctx context.Context, e outbound.End) error {
	return failed("end sending", s.write(ctx, len(e.Receipt)+len(e.Body), func(g *group) (answer, err error) {
		held, err := g.holds(e.Term)
		if err != nil || !held {
			return outbound.ErrFenced, err
		}
		ended, err := end(g, e)
		if err != nil || ended {
			return nil, err
		}
		return outbound.ErrSettled, nil
	}))
}

// end writes what became of a message; false: it is in another state.
func end(g *group, e outbound.End) (bool, error) {
	from, count, next, ended := outbound.Sending, 0, int64(0), int64(0)
	if e.State == outbound.Expired {
		from = outbound.Queued
	}
	if e.Count {
		count = 1
	}
	var body any // NULL, unless it changes
	if e.Body != nil {
		body = e.Body
	}
	if e.State.Done() {
		ended = g.w.now
	} else {
		next = g.w.now + e.Wait.Milliseconds()
	}
	n, err := g.w.affected(sqlEnd, e.Seq, e.Term.Installation, int(from), int(e.State), e.Term.Epoch, count, next, e.Error, string(e.Receipt), ended, e.Doubt, body, outbound.Partly)
	return n > 0, err
}
