package record

import (
	"context"
	"fmt"
	"strings"

	"leasehold/admin"
	"leasehold/delivery"
	"leasehold/internal/eventid"
	"leasehold/internal/fault"
)

// What a statement for a DeliveryRow begins with; an index may be named between the two.
const (
	DeliveryColumns = `SELECT d.event_seq, d.target, d.lease_id, d.webhook_id, d.state, d.attempts, d.next_attempt, d.ended_at, d.last_error, d.replay, e.installation_id
  FROM delivery d `
	DeliveryJoin = `JOIN event e ON e.seq = d.event_seq`
)

const sqlByWebhook = DeliveryColumns + DeliveryJoin + ` WHERE d.event_seq = $1 AND d.webhook_id = $2`

// DeliveryRow is a line of DeliveryColumns.
type DeliveryRow struct {
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

// Delivery is d for people: with the times that mean something in its state.
func (d *DeliveryRow) Delivery() admin.Delivery {
	out := admin.Delivery{
		ID: d.WebhookID, EventSeq: d.EventSeq, EventID: eventid.Event(d.EventSeq), Installation: d.InstallationID, Target: d.Target,
		State: delivery.State(d.State).String(), Attempts: d.Attempts, LastError: d.LastError,
		Replay: d.Replay, Lease: d.LeaseID,
	}
	switch delivery.State(d.State) {
	case delivery.Pending:
		out.NextAttempt = Time(d.NextAttempt)
	case delivery.Delivered:
		out.DeliveredAt = Time(d.EndedAt)
	case delivery.Dead, delivery.Dropped:
		out.GivenUpAt = Time(d.EndedAt)
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

// Deliveries writes the statement for q. A state is written as a number: a parameter
// would hide the index of those.
func (d *Dialect) Deliveries(q admin.DeliveryQuery) (string, []any, error) {
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
		index = d.DeliveryIndex[state]
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
	query := DeliveryColumns + index + DeliveryJoin
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	args = append(args, page(q.Limit))
	return query + fmt.Sprintf(" ORDER BY d.event_seq DESC, d.target DESC LIMIT $%d", len(args)), args, nil
}

// Deliveries implements admin.Store. An unknown state is fault.Invalid.
func (r *Reads) Deliveries(ctx context.Context, q admin.DeliveryQuery) ([]admin.Delivery, error) {
	query, args, err := r.d.Deliveries(q)
	if err != nil {
		return nil, err
	}
	var rows []DeliveryRow
	if err := r.db.SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, fmt.Errorf("list deliveries: %w", r.kind(err))
	}
	all := make([]admin.Delivery, 0, len(rows))
	for i := range rows {
		all = append(all, rows[i].Delivery())
	}
	return all, nil
}

// Delivery implements admin.Store.
func (r *Reads) Delivery(ctx context.Context, id string) (admin.Delivery, error) {
	seq, ok := eventid.WebhookSeq(id)
	if !ok {
		return admin.Delivery{}, noDelivery(id)
	}
	var rows []DeliveryRow
	if err := r.db.SelectContext(ctx, &rows, sqlByWebhook, seq, id); err != nil {
		return admin.Delivery{}, fmt.Errorf("read delivery %s: %w", id, r.kind(err))
	}
	if len(rows) == 0 {
		return admin.Delivery{}, noDelivery(id)
	}
	return rows[0].Delivery(), nil
}

func noDelivery(id string) error {
	return fault.Errorf(fault.NotFound, "there is no delivery %s: it may be past its retention", id)
}
