package sqlite

import (
	"context"
	"encoding/json"

	"github.com/jmoiron/sqlx"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/store/internal/record"
)

const (
	// Counted per lease, from the index of what waits alone; CROSS keeps that in front.
	sqlBacklogs = `SELECT b.lease_id AS id, b.count, e.accepted_at AS oldest
  FROM (SELECT lease_id, count(*) AS count, min(event_seq) AS seq FROM delivery WHERE state = 0 GROUP BY lease_id) b
  CROSS JOIN event e ON e.seq = b.seq`
	sqlCountPending  = `SELECT count(*) FROM delivery INDEXED BY delivery_pending WHERE state = 0`
	sqlCountDead     = `SELECT count(*) FROM delivery INDEXED BY delivery_dead WHERE state = 2`
	sqlCountMessages = `SELECT count(*) FROM message INDEXED BY message_waiting WHERE state < 2`
	sqlJourneys      = record.DeliveryColumns + record.DeliveryJoin + ` WHERE d.event_seq IN (SELECT value FROM json_each($1)) ORDER BY d.event_seq, d.target`
	sqlPayloads      = record.PayloadColumns + ` WHERE e.seq IN (SELECT value FROM json_each($1))`
	sqlCountWaiting  = `SELECT count(*) FROM delivery INDEXED BY delivery_pending WHERE state = 0 AND target = $1`
	sqlEndWaiting    = `UPDATE delivery SET state = 2, ended_at = $2, last_error = $3 WHERE state = 0 AND (event_seq, target) IN (
  SELECT event_seq, target FROM delivery INDEXED BY delivery_pending WHERE state = 0 AND target = $1 ORDER BY event_seq LIMIT $4)`
	sqlMoveMessages = `UPDATE message INDEXED BY message_waiting SET lease_id = $3 WHERE state < 2 AND state = 0 AND lease_id = $2 AND installation_id = $1`
	// No index knows when something ended or was accepted: the deliveries are walked
	// in the order of their events, and each is told whether it is one of those.
	sqlReplayable = `SELECT d.event_seq, d.target, d.lease_id, d.webhook_id, d.state, d.attempts, d.next_attempt, d.ended_at, d.last_error, d.replay, e.installation_id,
       d.state <> 0 AND ($3 = '' OR e.installation_id = $3) AND ($4 = '' OR e.type = $4)
   AND (e.accepted_at >= $5 AND e.accepted_at < $6 OR d.ended_at >= $5 AND d.ended_at < $6)
   AND d.lease_id IN (SELECT id FROM lease) AS chosen
  FROM delivery d JOIN event e ON e.seq = d.event_seq
 WHERE d.event_seq > $1 AND d.target = $2 ORDER BY d.event_seq LIMIT $7`
)

// dialect is what is SQLite's own of the statements for people.
func dialect(path string) *record.Dialect {
	return &record.Dialect{
		Keep:     true,
		Backlogs: sqlBacklogs, CountPending: sqlCountPending, CountDead: sqlCountDead, CountMessages: sqlCountMessages, Journeys: sqlJourneys, Payloads: sqlPayloads,
		MoveMessages: sqlMoveMessages, CountWaiting: sqlCountWaiting, EndWaiting: sqlEndWaiting,
		Seqs:   func(seqs []int64) (any, error) { return list(seqs) },
		Events: eventQuery,
		Replayable: func(q admin.ReplayQuery) (string, []any) {
			return sqlReplayable, []any{q.After, q.Target, q.Installation, q.Type, record.Millis(q.Since), record.Millis(q.Until), q.Limit}
		},
		// Waiting and dead deliveries are found in the index that holds only those. CROSS
		// keeps it in front: an installation may have far more events than any of these.
		DeliveryIndex: map[delivery.State]string{
			delivery.Pending: "INDEXED BY delivery_pending CROSS ",
			delivery.Dead:    "INDEXED BY delivery_dead CROSS ",
		},
		MessageIndex: " INDEXED BY message_waiting",
		Bytes:        func(context.Context, *sqlx.DB) (int64, error) { return sizeOf(path) + sizeOf(path+"-wal"), nil },
	}
}

// list is how a statement is given many numbers: as JSON.
func list(seqs []int64) (string, error) {
	b, err := json.Marshal(seqs)
	return string(b), err
}

// eventQuery writes the statement for q: forwards from After by seq, backwards
// otherwise, by seq or, for one installation, through its index.
func eventQuery(q admin.EventQuery) (string, []any) {
	before := q.Before
	if before <= 0 {
		before = 1<<63 - 1
	}
	if q.After > 0 {
		return record.EventColumns + ` FROM event WHERE seq > $1 AND seq < $2 AND ($3 = '' OR installation_id = $3) AND ($4 = '' OR type = $4) ORDER BY seq LIMIT $5`,
			[]any{q.After, before, q.Installation, q.Type, q.Limit}
	}
	if q.Installation != "" && q.Type == "" {
		return record.EventColumns + ` FROM event WHERE seq IN (
  SELECT seq FROM event INDEXED BY event_dedupe WHERE installation_id = $1 AND seq < $2 ORDER BY +seq DESC LIMIT $3) ORDER BY seq DESC`,
			[]any{q.Installation, before, q.Limit}
	}
	if q.Installation != "" {
		return record.EventColumns + ` FROM event INDEXED BY event_dedupe WHERE installation_id = $1 AND seq < $2 AND type = $3 ORDER BY +seq DESC LIMIT $4`,
			[]any{q.Installation, before, q.Type, q.Limit}
	}
	return record.EventColumns + ` FROM event WHERE seq < $1 AND ($2 = '' OR type = $2) ORDER BY seq DESC LIMIT $3`, []any{before, q.Type, q.Limit}
}
