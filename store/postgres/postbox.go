package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"leasehold/channel"
	"leasehold/delivery/outbound"
)

const (
	sqlLaden    = `SELECT DISTINCT lease_id FROM message WHERE state < 2 ORDER BY lease_id`
	sqlOutgoing = `SELECT m.seq, m.id, m.installation_id AS installation, coalesce(i.type, '') AS channel_type, m.conversation, m.state, m.attempts,
       greatest(m.next_attempt - now, 0) AS due, greatest(m.expires_at - now, 0) AS left,
       CASE m.op WHEN 'edit' THEN m.message_id ELSE ''::bytea END AS edits
  FROM message m CROSS JOIN leasehold_now() AS now LEFT JOIN installation i ON i.id = m.installation_id
 WHERE m.state < 2 AND m.lease_id = $1 AND m.seq > $2 ORDER BY m.seq LIMIT $3`

	// Both are fenced as sqlAccept is, by owner and epoch.
	oneFence = `WITH f AS MATERIALIZED (SELECT l.id, l.epoch FROM lease l WHERE l.id = $1 AND l.epoch = $2 AND l.owner = $3
   AND EXISTS (SELECT 1 FROM session s WHERE s.session_id = $3) FOR SHARE OF l),
held AS MATERIALIZED (SELECT count(*) AS n FROM f),
`
	// The answer is the message as it was before, with the message of ours that it names, and the follow-up address of the event
	// that it answers, while it is good, and in that event's conversation only. One that is taken up by the same term
	// again, whose answer was lost, stays as it is. What may have been sent before does
	// not expire: it is unknown.
	sqlBeginSending = oneFence + `clock AS MATERIALIZED (SELECT leasehold_now() AS now),
m AS MATERIALIZED (SELECT m.* FROM message m WHERE m.seq = $4 AND m.lease_id = $1 AND (SELECT n FROM held) > 0 FOR UPDATE),
up AS (UPDATE message u SET epoch = $2, next_attempt = 0, state = CASE WHEN m.expires_at > clock.now THEN 1 WHEN m.doubt THEN 5 WHEN m.receipt <> '' THEN 3 ELSE 4 END,
         last_error = CASE WHEN m.expires_at <= clock.now AND NOT m.doubt AND m.receipt <> '' THEN $5 ELSE u.last_error END,
         ended_at = CASE WHEN m.expires_at <= clock.now THEN clock.now ELSE 0 END
  FROM m, clock WHERE u.seq = m.seq AND m.state = 0)
SELECT held.n > 0, coalesce(m.state, -1), coalesce(m.epoch, 0), coalesce(m.expires_at <= clock.now, false), coalesce(m.id, ''), coalesce(m.installation_id, ''),
       coalesce(m.op, ''), m.conversation, m.thread, m.message_id, m.body, m.receipt, e.event_id, f.sealed, coalesce(o.state, -1), o.receipt
  FROM held CROSS JOIN clock LEFT JOIN m ON true
  LEFT JOIN event e ON m.event_seq <> 0 AND e.seq = m.event_seq AND e.installation_id = m.installation_id AND e.conversation = m.conversation
  LEFT JOIN follow_up f ON f.event_seq = e.seq AND f.expires_at > clock.now
  LEFT JOIN message o ON o.id = encode(m.message_id, 'escape') AND o.installation_id = m.installation_id`

	// From is 0 for what expires and 1 for what was sent or not.
	sqlEndSending = oneFence + `up AS (UPDATE message u SET state = CASE WHEN $6 <> 4 THEN $6::smallint WHEN u.doubt THEN 5 WHEN u.receipt <> '' THEN 3 ELSE 4 END,
         doubt = CASE WHEN $6 = 0 AND $10 <> ''::bytea THEN false ELSE u.doubt OR $11 END, epoch = $2, attempts = u.attempts + $7,
         last_error = CASE WHEN $6 = 4 AND NOT u.doubt AND u.receipt <> '' THEN $13 ELSE $9 END,
         receipt = CASE WHEN $10 = ''::bytea THEN u.receipt ELSE $10 END, body = coalesce($12, u.body),
         next_attempt = CASE WHEN $6::smallint < 2 THEN leasehold_now() + $8 ELSE 0 END, ended_at = CASE WHEN $6::smallint < 2 THEN 0 ELSE leasehold_now() END
  FROM f WHERE u.seq = $4 AND u.lease_id = f.id AND u.state = $5 RETURNING u.seq)
SELECT held.n > 0, EXISTS (SELECT 1 FROM up) FROM held`
)

// Laden implements outbound.Postbox.
func (s *Store) Laden(ctx context.Context) ([]string, error) {
	var leases []string
	if err := s.db.SelectContext(ctx, &leases, sqlLaden); err != nil {
		return nil, failed("list leases with messages", s.kind(err))
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
		Due, Left        int64 // in ms
	}
	if err := s.db.SelectContext(ctx, &rows, sqlOutgoing, lease, after, limit); err != nil {
		return nil, failed("list messages of "+lease, s.kind(err))
	}
	items := make([]outbound.Item, 0, len(rows))
	for _, m := range rows {
		items = append(items, outbound.Item{
			Seq: m.Seq, ID: m.ID, Installation: m.Installation, ChannelType: m.ChannelType, Conversation: m.Conversation, Edits: m.Edits,
			State: outbound.State(m.State), Attempts: m.Attempts,
			Due: time.Duration(m.Due) * time.Millisecond, Left: time.Duration(m.Left) * time.Millisecond,
		})
	}
	return items, nil
}

// takenUp is a message as it was when it was to be taken up.
type takenUp struct {
	message       outbound.TakenUp
	held, expired bool
	state         outbound.State // -1 = there is none
	epoch         int64
	body, receipt []byte
}

func (m *takenUp) scan(rows pgx.Rows) error {
	var conversation, thread, id, event []byte
	var named outbound.Named
	err := rows.Scan(&m.held, &m.state, &m.epoch, &m.expired, &m.message.ID, &m.message.Installation, &m.message.Op, &conversation, &thread, &id, &m.body, &m.receipt, &event, &m.message.Sealed, &named.State, &named.Receipt)
	m.message.Named = nil
	if named.State >= 0 {
		m.message.Named = &named
	}
	m.message.Conversation, m.message.Thread, m.message.MessageID, m.message.Event = string(conversation), string(thread), string(id), string(event)
	return err
}

// BeginSending implements outbound.Postbox.
func (s *Store) BeginSending(ctx context.Context, t channel.Term, seq int64) (outbound.TakenUp, error) {
	m, err := write(ctx, s, func(ctx context.Context) (outbound.TakenUp, error) {
		var m takenUp
		err := s.atomically(ctx, s.pool, step{sql: sqlBeginSending, args: []any{t.Installation, t.Epoch, t.Owner, seq, outbound.Partly}, scan: m.scan})
		switch {
		case err != nil:
			return m.message, err
		case !m.held:
			return m.message, outbound.ErrFenced
		case m.state == outbound.Queued && m.expired:
			return m.message, outbound.ErrExpired
		case m.state == outbound.Queued, m.state == outbound.Sending && m.epoch == t.Epoch:
			return m.message, errors.Join(outbound.DecodeBody(m.body, &m.message.Letter), outbound.DecodeProgress(m.receipt, &m.message.Letter))
		default:
			return m.message, outbound.ErrSettled
		}
	})
	return m, failed("begin to send", err)
}

// EndSending implements outbound.Postbox.
func (s *Store) EndSending(ctx context.Context, e outbound.End) error {
	from, count := outbound.Sending, 0
	if e.State == outbound.Expired {
		from = outbound.Queued
	}
	if e.Count {
		count = 1
	}
	receipt := e.Receipt
	if receipt == nil {
		receipt = []byte{}
	}
	_, err := write(ctx, s, func(ctx context.Context) (ended bool, err error) {
		var held bool
		err = s.atomically(ctx, s.pool, step{
			sql: sqlEndSending,
			args: []any{
				e.Term.Installation, e.Term.Epoch, e.Term.Owner, e.Seq, int16(from), int16(e.State), count, e.Wait.Milliseconds(), plain(e.Error), receipt, e.Doubt, e.Body, outbound.Partly,
			},
			scan: func(rows pgx.Rows) error { return rows.Scan(&held, &ended) },
		})
		switch {
		case err == nil && !held:
			err = outbound.ErrFenced
		case err == nil && !ended:
			err = outbound.ErrSettled
		}
		return ended, err
	})
	return failed("end sending", err)
}
