package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"leasehold/admin"
	"leasehold/delivery/outbound"
	"leasehold/store/internal/record"
)

const (
	// The lease is its carrier's, whose row is locked: what rides elsewhere meanwhile
	// takes with it what is there. Nothing is written where there is no installation, or
	// where a message has the id or the key already.
	sqlPost = `INSERT INTO message(id, installation_id, lease_id, idempotency_key, op, conversation, thread, message_id, created_at, expires_at, body, event_seq)
SELECT $1, i.id, CASE i.via WHEN '' THEN i.id ELSE i.via END, $3, $4, $5, $6, $7, now, now + $8, $9, $10
  FROM installation i CROSS JOIN leasehold_now() AS now WHERE i.id = $2 AND NOT i.removed FOR SHARE OF i
ON CONFLICT DO NOTHING`
	sqlPostable = `SELECT EXISTS (SELECT 1 FROM installation WHERE id = $1 AND NOT removed)`
)

// PutMessage implements admin.Store.
func (s *Store) PutMessage(ctx context.Context, m outbound.Message) (admin.Message, error) {
	body, err := outbound.EncodeBody(m.Message)
	if err != nil {
		return admin.Message{}, failed("post a message", err)
	}
	_, err = write(ctx, s, func(ctx context.Context) (n int64, err error) {
		there := false
		err = s.atomically(
			ctx, s.pool,
			step{sql: sqlPost, args: []any{
				m.ID, m.Installation, m.IdempotencyKey, m.Op, []byte(m.Conversation), []byte(m.Thread), []byte(m.MessageID), m.ExpiresIn.Milliseconds(), body, m.Answers,
			}},
			step{sql: sqlPostable, args: []any{m.Installation}, scan: func(rows pgx.Rows) error { return rows.Scan(&there) }},
		)
		if err == nil && !there {
			err = record.NoInstallation(m.Installation)
		}
		return n, err
	})
	if err != nil {
		return admin.Message{}, failed("post a message", err)
	}
	select {
	case s.posts <- struct{}{}:
	default: // one that is not told yet tells of this one, too
	}
	return s.Posted(ctx, m)
}
