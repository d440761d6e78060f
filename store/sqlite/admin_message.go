package sqlite

import (
	"context"

	"leasehold/admin"
	"leasehold/delivery/outbound"
	"leasehold/store/internal/record"
)

const (
	// The lease is its carrier's. Nothing is written where there is no installation,
	// or where a message has the id or the key already.
	sqlPost = `INSERT INTO message(id, installation_id, lease_id, idempotency_key, op, conversation, thread, message_id, created_at, expires_at, body, event_seq)
SELECT $1, i.id, CASE i.via WHEN '' THEN i.id ELSE i.via END, $3, $4, $5, $6, $7, $8, $9, $10, $11 FROM installation i WHERE i.id = $2 AND i.removed = 0
ON CONFLICT DO NOTHING`
)

// PutMessage implements admin.Store. Posts share their commits.
func (s *Store) PutMessage(ctx context.Context, m outbound.Message) (admin.Message, error) {
	body, err := outbound.EncodeBody(m.Message)
	if err == nil {
		err = s.accepting()
	}
	if err != nil {
		return admin.Message{}, failed("post a message", err)
	}
	err = s.write(ctx, len(body), func(g *group) (answer, err error) {
		n, err := g.w.affected(sqlPost, m.ID, m.Installation, m.IdempotencyKey, m.Op, m.Conversation, m.Thread, m.MessageID,
			g.w.now, g.w.now+m.ExpiresIn.Milliseconds(), body, m.Answers)
		if err != nil || n > 0 {
			return nil, err
		}
		there, err := g.w.exists(`SELECT 1 FROM installation WHERE id = $1 AND removed = 0`, m.Installation)
		if err == nil && !there {
			return record.NoInstallation(m.Installation), nil
		}
		return nil, err
	})
	if err != nil {
		return admin.Message{}, failed("post a message", err)
	}
	return s.Posted(ctx, m)
}
