package postgres

import (
	"context"
	"fmt"
	"strings"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/internal/eventid"
	"leasehold/internal/fault"
)

const (
	deliveryColumns = `SELECT d.event_seq, d.target, d.lease_id, d.webhook_id, d.state, d.attempts, d.next_attempt, d.ended_at, d.last_error, d.replay, e.installation_id
  FROM delivery d `
	deliveryJoin = `JOIN event e ON e.seq = d.event_seq`
	sqlByWebhook = deliveryColumns + deliveryJoin + ` WHERE d.event_seq = $1 AND d.webhook_id = $2`
	// Locked in the order of events, whatever the order of ids.
	sqlDrop = `WITH d AS MATERIALIZED (SELECT d.event_seq, d.target FROM delivery d
  JOIN unnest($1::bigint[], $2::text[]) AS w(seq, id) ON d.event_seq = w.seq AND d.webhook_id = w.id
 WHERE d.state IN (0, 2) ORDER BY d.event_seq, d.target FOR UPDATE OF d)
UPDATE delivery u SET state = 3, ended_at = leasehold_now()
  FROM d WHERE u.event_seq = d.event_seq AND u.target = d.target AND u.state IN (0, 2)`
)

type deliveryRow struct {
	EventSeq       int64 `db:"event_seq"`
	Target         string
	LeaseID        string `db:"lease_id"`
	WebhookID      string `db:"webhook_id"`
	State          int
	Attempts       int
	NextAttempt    int64  `db:"next_attempt"`
	EndedAt        int64  `db:"ended_at"`
	LastError      string `db:"last_error"`
	Replay         bool
	InstallationID string `db:"installation_id"`
}

func (d *deliveryRow) delivery() admin.Delivery {
	out := admin.Delivery{
		ID: d.WebhookID, EventSeq: d.EventSeq, EventID: eventid.Event(d.EventSeq), Installation: d.InstallationID, Target: d.Target,
		State: delivery.State(d.State).String(), Attempts: d.Attempts, LastError: d.LastError,
		Replay: d.Replay, Lease: d.LeaseID,
	}
	switch delivery.State(d.State) {
	case delivery.Pending:
		out.NextAttempt = fromMillis(d.NextAttempt)
	case delivery.Delivered:
		out.DeliveredAt = fromMillis(d.EndedAt)
	case delivery.Dead, delivery.Dropped:
		out.GivenUpAt = fromMillis(d.EndedAt)
	}
	return out
}

// stateOf reads the name of a state as a filter has it.
func stateOf(name string) (delivery.State, error) {
	for _, s := range []delivery.State{delivery.Pending, delivery.Delivered, delivery.Dead, delivery.Dropped} {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, fault.Errorf(fault.Invalid, "no delivery is in the state %q; there are pending, delivered, dead and dropped", name)
}

// deliveryQuery writes the statement for q.
func deliveryQuery(q admin.DeliveryQuery) (string, []any, error) {
	var where []string
	var args []any
	and := func(column, operator string, value any) {
		args = append(args, value)
		where = append(where, fmt.Sprintf("%s %s $%d", column, operator, len(args)))
	}
	if q.State != "" {
		state, err := stateOf(q.State)
		if err != nil {
			return "", nil, err
		}
		where = append(where, fmt.Sprintf("d.state = %d", state)) // a parameter would hide the index of those
	}
	if q.Installation != "" {
		and("e.installation_id", "=", q.Installation)
	}
	if q.Target != "" {
		and("d.target", "=", q.Target)
	}
	if q.Before > 0 {
		and("d.event_seq", "<", q.Before)
	}
	query := deliveryColumns + deliveryJoin
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	args = append(args, page(q.Limit))
	return query + fmt.Sprintf(" ORDER BY d.event_seq DESC, d.target DESC LIMIT $%d", len(args)), args, nil
}

// Deliveries implements admin.Store. An unknown state is fault.Invalid.
func (r *reads) Deliveries(ctx context.Context, q admin.DeliveryQuery) ([]admin.Delivery, error) {
	query, args, err := deliveryQuery(q)
	if err != nil {
		return nil, err
	}
	var rows []deliveryRow
	if err := r.db.SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, failed("list deliveries", r.kind(err))
	}
	all := make([]admin.Delivery, 0, len(rows))
	for i := range rows {
		all = append(all, rows[i].delivery())
	}
	return all, nil
}

// Delivery implements admin.Store.
func (r *reads) Delivery(ctx context.Context, id string) (admin.Delivery, error) {
	seq, ok := eventid.WebhookSeq(id)
	if !ok {
		return admin.Delivery{}, noDelivery(id)
	}
	var rows []deliveryRow
	if err := r.db.SelectContext(ctx, &rows, sqlByWebhook, seq, id); err != nil {
		return admin.Delivery{}, failed("read delivery "+id, r.kind(err))
	}
	if len(rows) == 0 {
		return admin.Delivery{}, noDelivery(id)
	}
	return rows[0].delivery(), nil
}

func noDelivery(id string) error {
	return fault.Errorf(fault.NotFound, "there is no delivery %s: it may be past its retention", id)
}

// numbered are the webhook ids that could be ones, with their events.
func numbered(ids []string) (seqs []int64, known []string) {
	for _, id := range ids {
		if seq, ok := eventid.WebhookSeq(id); ok {
			seqs, known = append(seqs, seq), append(known, id)
		}
	}
	return seqs, known
}

// DropDeliveries implements admin.Store.
func (s *Store) DropDeliveries(ctx context.Context, ids []string) (int, error) {
	seqs, known := numbered(ids)
	dropped, err := change(ctx, s, func(ctx context.Context, c *changing) (int64, error) {
		n, err := c.exec(ctx, sqlDrop, seqs, known)
		if n > 0 {
			c.wake = "delivery"
		}
		return n, err
	})
	return int(dropped), failed("drop deliveries", err)
}
