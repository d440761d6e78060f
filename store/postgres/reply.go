package postgres

import (
	"slices"

	"github.com/jackc/pgx/v5"

	"leasehold/delivery/outbound"
)

const (
	// sqlReplyTo locks the installations that replies are of, before the leases are, as
	// an accept does: what rides elsewhere meanwhile takes with it what is there.
	sqlReplyTo = `SELECT i.id FROM installation i WHERE i.id = ANY($1::text[]) ORDER BY i.id FOR SHARE OF i`

	// sqlMarkReply is sqlMark with the replies of the marks that are written, $11 and
	// more, which point at them. A reply stands under its carrier's lease; where its
	// installation was removed, under the mark's, refused. Nothing is written where a
	// message has the id or the key already.
	sqlMarkReply = markRows + `,
up AS (` + markUpdate + `),
r AS (INSERT INTO message(id, installation_id, lease_id, event_seq, idempotency_key, op, conversation, thread, message_id, created_at, expires_at, body,
         state, last_error, ended_at)
  SELECT r.id, r.installation, coalesce(CASE i.via WHEN '' THEN i.id ELSE i.via END, m.id), m.seq, r.key, r.op, r.conversation, r.thread, r.message_id,
         clock.now, clock.now + r.expires, r.body, CASE WHEN i.id IS NULL OR r.refused <> '' THEN 3 ELSE 0 END,
         CASE WHEN i.id IS NULL THEN $21 ELSE r.refused END, CASE WHEN i.id IS NULL OR r.refused <> '' THEN clock.now ELSE 0 END
    FROM unnest($11::bigint[], $12::text[], $13::text[], $14::text[], $15::text[], $16::bytea[], $17::bytea[], $18::bytea[], $19::bigint[], $20::bytea[], $22::text[])
         WITH ORDINALITY AS r(mark, id, installation, key, op, conversation, thread, message_id, expires, body, refused, n)
    JOIN up ON up.n = r.mark JOIN m ON m.n = r.mark CROSS JOIN clock LEFT JOIN installation i ON i.id = r.installation AND NOT i.removed
   ORDER BY r.n
  ON CONFLICT DO NOTHING)
SELECT n FROM up`
)

// replying are the steps that write marks with what programs answered; nil: they
// answered nothing.
func replying(all []marked, args []any, scan func(pgx.Rows) error) ([]step, error) {
	var marks, expiries []int64
	var ids, installations, keys, ops, refused []string
	var conversations, threads, messages, bodies [][]byte
	for n, m := range all {
		for _, r := range m.Replies {
			out := outbound.Answering(m.Seq, r)
			body, err := outbound.EncodeBody(out.Message)
			if err != nil {
				return nil, err
			}
			marks, expiries = append(marks, int64(n+1)), append(expiries, out.ExpiresIn.Milliseconds())
			ids, installations, keys = append(ids, out.ID), append(installations, out.Installation), append(keys, out.IdempotencyKey)
			ops, refused = append(ops, out.Op), append(refused, plain(r.Refused))
			conversations, threads = append(conversations, []byte(out.Conversation)), append(threads, []byte(out.Thread))
			messages, bodies = append(messages, []byte(out.MessageID)), append(bodies, body)
		}
	}
	if len(marks) == 0 {
		return nil, nil
	}
	speakers := slices.Compact(slices.Sorted(slices.Values(installations)))
	args = append(args, marks, ids, installations, keys, ops, conversations, threads, messages, expiries, bodies, outbound.Orphaned, refused)
	return []step{{sql: sqlReplyTo, args: []any{speakers}}, {sql: sqlMarkReply, args: args, scan: scan}}, nil
}
