package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"leasehold/admin"
	"leasehold/store/internal/record"
)

const (
	// Counted per lease, from the index of what waits alone.
	sqlBacklogs = `SELECT b.lease_id AS id, b.count, e.accepted_at AS oldest
  FROM (SELECT lease_id, count(*) AS count, min(event_seq) AS seq FROM delivery WHERE state = 0 GROUP BY lease_id) b
  JOIN event e ON e.seq = b.seq`
	sqlCountPending  = `SELECT count(*) FROM delivery WHERE state = 0`
	sqlCountDead     = `SELECT count(*) FROM delivery WHERE state = 2`
	sqlCountMessages = `SELECT count(*) FROM message WHERE state < 2`
	sqlJourneys      = record.DeliveryColumns + record.DeliveryJoin + ` WHERE d.event_seq = ANY($1) ORDER BY d.event_seq, d.target`
	sqlPayloads      = record.PayloadColumns + ` WHERE e.seq = ANY($1)`
	sqlCountWaiting  = `SELECT count(*) FROM delivery WHERE state = 0 AND target = $1`
	// Locked in the order of events, as marks are.
	sqlEndWaiting = `WITH d AS MATERIALIZED (SELECT event_seq, target FROM delivery WHERE state = 0 AND target = $1 ORDER BY event_seq LIMIT $4 FOR UPDATE)
UPDATE delivery u SET state = 2, ended_at = $2, last_error = $3 FROM d WHERE u.event_seq = d.event_seq AND u.target = d.target AND u.state = 0`
	sqlMoveMessages = `UPDATE message SET lease_id = $3 WHERE state = 0 AND lease_id = $2 AND installation_id = $1`
	// No index knows when something ended or was accepted: the deliveries are walked
	// in the order of their events, and each is told whether it is one of those.
	sqlReplayable = `SELECT d.event_seq, d.target, d.lease_id, d.webhook_id, d.state, d.attempts, d.next_attempt, d.ended_at, d.last_error, d.replay, e.installation_id,
       d.state <> 0 AND ($3::text = '' OR e.installation_id = $3) AND ($4::bytea = ''::bytea OR e.type = $4)
   AND (e.accepted_at >= $5 AND e.accepted_at < $6 OR d.ended_at >= $5 AND d.ended_at < $6)
   AND d.lease_id IN (SELECT id FROM lease) AS chosen
  FROM delivery d JOIN event e ON e.seq = d.event_seq
 WHERE d.event_seq > $1 AND d.target = $2 ORDER BY d.event_seq LIMIT $7`
)

// dialect is what is PostgreSQL's own of the statements for people.
var dialect = &record.Dialect{
	Backlogs: sqlBacklogs, CountPending: sqlCountPending, CountDead: sqlCountDead, CountMessages: sqlCountMessages, Journeys: sqlJourneys, Payloads: sqlPayloads,
	MoveMessages: sqlMoveMessages, CountWaiting: sqlCountWaiting, EndWaiting: sqlEndWaiting,
	Seqs:   func(seqs []int64) (any, error) { return seqs, nil },
	Events: eventQuery,
	Replayable: func(q admin.ReplayQuery) (string, []any) {
		return sqlReplayable, []any{q.After, q.Target, q.Installation, []byte(q.Type), record.Millis(q.Since), record.Millis(q.Until), q.Limit}
	},
	Bytes: func(ctx context.Context, db *sqlx.DB) (n int64, err error) {
		err = db.GetContext(ctx, &n, sqlBytes)
		return n, err
	},
}

// eventQuery writes the statement for q: forwards from After by seq, backwards
// otherwise, by seq or, for one installation, through its index.
func eventQuery(q admin.EventQuery) (string, []any) {
	args := []any{}
	param := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	var where []string
	order := "DESC"
	if q.After > 0 {
		where, order = append(where, "seq > "+param(q.After)), "ASC"
	}
	if q.Before > 0 {
		where = append(where, "seq < "+param(q.Before))
	}
	if q.Installation != "" {
		where = append(where, "installation_id = "+param(q.Installation))
	}
	if q.Type != "" {
		where = append(where, "type = "+param([]byte(q.Type)))
	}
	filter := ""
	if len(where) > 0 {
		filter = " WHERE " + strings.Join(where, " AND ")
	}
	tail := " ORDER BY seq " + order + " LIMIT " + param(q.Limit)
	if q.Installation != "" && q.After == 0 && q.Type == "" {
		// Its newest are found in the index alone; by seq they may be far apart.
		return record.EventColumns + " FROM event WHERE seq = ANY(ARRAY(SELECT seq + 0 FROM event" + filter + " ORDER BY seq + 0 DESC LIMIT " +
			fmt.Sprintf("$%d", len(args)) + "))" + " ORDER BY seq DESC", args
	}
	return record.EventColumns + " FROM event" + filter + tail, args
}
