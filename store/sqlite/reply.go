package sqlite

import (
	"leasehold/delivery"
	"leasehold/delivery/outbound"
)

// sqlReply stores a message under its carrier's lease; where its installation was
// removed, under the lease of the mark ($3), refused. Nothing is written where a
// message has the id or the key already.
const sqlReply = `INSERT INTO message(id, installation_id, lease_id, event_seq, idempotency_key, op, conversation, thread, message_id, created_at, expires_at, body,
       state, last_error, ended_at)
SELECT $1, $2, coalesce(CASE i.via WHEN '' THEN i.id ELSE i.via END, $3), $4, $5, $6, $7, $8, $9, $10, $11, $12,
       CASE WHEN i.id IS NULL OR $13 <> '' THEN 3 ELSE 0 END, CASE WHEN i.id IS NULL THEN $14 ELSE $13 END,
       CASE WHEN i.id IS NULL OR $13 <> '' THEN $10 ELSE 0 END
  FROM (SELECT 1) LEFT JOIN installation i ON i.id = $2 AND i.removed = 0 WHERE true
ON CONFLICT DO NOTHING`

// reply stores what a program answered, in the transaction of its mark.
func reply(g *group, m *delivery.Mark) error {
	for _, r := range m.Replies {
		out := outbound.Answering(m.Seq, r)
		body, err := outbound.EncodeBody(out.Message)
		if err != nil {
			return err
		}
		_, err = g.w.exec(sqlReply, out.ID, out.Installation, m.Term.Installation, out.Answers, out.IdempotencyKey, out.Op, out.Conversation, out.Thread, out.MessageID,
			g.w.now, g.w.now+out.ExpiresIn.Milliseconds(), body, r.Refused, outbound.Orphaned)
		if err != nil {
			return err
		}
	}
	return nil
}
