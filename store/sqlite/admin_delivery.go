package sqlite

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
	sqlDrop      = `UPDATE delivery SET state = 3, ended_at = $3 WHERE event_seq = $1 AND webhook_id = $2 AND state IN (0, 2)`
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

// stateIndexes: waiting and dead deliveries are found in the index that holds only those; a
// parameter in place of the number would hide it. CROSS keeps it in front: an installation
// may have far more events than any of these.
var stateIndexes = map[delivery.State]string{
	delivery.Pending: "INDEXED BY delivery_pending CROSS ",
	delivery.Dead:    "INDEXED BY delivery_dead CROSS ",
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
	var index string
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
		index = stateIndexes[state]
		where = append(where, fmt.Sprintf("d.state = %d", state))
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
	query := deliveryColumns + index + deliveryJoin
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

// DropDeliveries implements admin.Store.
func (s *Store) DropDeliveries(ctx context.Context, ids []string) (int, error) {
	var dropped int64
	err := s.c.do(ctx, func(w *writer) error {
		for _, id := range ids {
			seq, ok := eventid.WebhookSeq(id)
			if !ok {
				continue
			}
			n, err := w.affected(sqlDrop, seq, id, w.now)
			if err != nil {
				return err
			}
			dropped += n
		}
		w.bump, w.wake = dropped > 0, dropped > 0
		return nil
	})
	if err != nil {
		return 0, failed("drop deliveries", err)
	}
	return int(dropped), nil
}
