package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/delivery/outbound"
	"leasehold/internal/eventid"
	"leasehold/internal/fault"
)

const (
	messageColumns = `SELECT seq, id, installation_id, lease_id, event_seq, idempotency_key, op, conversation, thread, message_id, state, attempts, next_attempt,
       last_error, receipt, created_at, expires_at, ended_at`
	messageBody   = `, body FROM message`
	sqlMessage    = messageColumns + messageBody + ` WHERE id = $1`
	sqlMessageKey = messageColumns + messageBody + ` WHERE installation_id = $1 AND idempotency_key = $2 AND idempotency_key <> ''`
)

type messageRow struct {
	Seq            int64
	ID             string
	InstallationID string `db:"installation_id"`
	LeaseID        string `db:"lease_id"`
	EventSeq       int64  `db:"event_seq"`
	IdempotencyKey string `db:"idempotency_key"`
	Op             string
	Conversation   string
	Thread         string
	MessageID      string `db:"message_id"`
	State          int
	Attempts       int
	NextAttempt    int64  `db:"next_attempt"`
	LastError      string `db:"last_error"`
	Receipt        string
	CreatedAt      int64 `db:"created_at"`
	ExpiresAt      int64 `db:"expires_at"`
	EndedAt        int64 `db:"ended_at"`
	Body           []byte
}

func (r *messageRow) message() (admin.Message, error) {
	m := admin.Message{
		Seq: r.Seq, ID: r.ID, Installation: r.InstallationID, Op: r.Op, Conversation: r.Conversation, Thread: r.Thread, MessageID: r.MessageID,
		IdempotencyKey: r.IdempotencyKey, State: outbound.State(r.State).String(), Attempts: r.Attempts, LastError: r.LastError,
		CreatedAt: Time(r.CreatedAt), ExpiresAt: Time(r.ExpiresAt), EndedAt: Time(r.EndedAt), Lease: r.LeaseID,
	}
	if r.EventSeq != 0 {
		m.Event = eventid.Event(r.EventSeq)
	}
	if outbound.State(r.State) == outbound.Queued {
		m.NextAttempt = Time(r.NextAttempt)
	}
	if r.Receipt != "" {
		m.Receipt = &outbound.Receipt{}
		if err := json.Unmarshal([]byte(r.Receipt), m.Receipt); err != nil {
			return m, fmt.Errorf("receipt of %s: %w", r.ID, err)
		}
	}
	if r.Body == nil { // a list has none
		return m, nil
	}
	content := outbound.Letter{Message: channel.Message{ID: r.ID}}
	err := outbound.DecodeBody(r.Body, &content)
	m.Text, m.Format, m.Native, m.Parts = content.Text, content.Format, content.Native, len(content.Parts)
	return m, err
}

// Posted reads what m is stored as: itself, or the first of its key.
func (r *Reads) Posted(ctx context.Context, m outbound.Message) (admin.Message, error) {
	if m.IdempotencyKey != "" {
		return r.oneMessage(ctx, m.ID, sqlMessageKey, m.Installation, m.IdempotencyKey)
	}
	return r.oneMessage(ctx, m.ID, sqlMessage, m.ID)
}

// Message implements admin.Store.
func (r *Reads) Message(ctx context.Context, id string) (admin.Message, error) {
	return r.oneMessage(ctx, id, sqlMessage, id)
}

func (r *Reads) oneMessage(ctx context.Context, id, query string, args ...any) (admin.Message, error) {
	var rows []messageRow
	if err := r.db.SelectContext(ctx, &rows, query, args...); err != nil {
		return admin.Message{}, fmt.Errorf("read message %s: %w", id, r.kind(err))
	}
	if len(rows) == 0 {
		return admin.Message{}, fault.Errorf(fault.NotFound, "there is no message %s: it may be past its retention", id)
	}
	m, err := rows[0].message()
	if err != nil {
		return m, fmt.Errorf("read message %s: %w", id, err)
	}
	return m, nil
}

// Messages writes the statement for q. What waits is found in the index that holds
// only that; a parameter in place of the number would hide it.
func (d *Dialect) Messages(q admin.MessageQuery) (string, []any, error) {
	query, where, args := messageColumns+" FROM message", []string{}, []any{}
	and := func(column, operator string, value any) {
		args = append(args, value)
		where = append(where, fmt.Sprintf("%s %s $%d", column, operator, len(args)))
	}
	if q.State != "" {
		state := slices.Index(outbound.States, q.State)
		if state < 0 {
			return "", nil, fault.Errorf(fault.Invalid, "no message is in the state %q; there are %s", q.State, strings.Join(outbound.States, ", "))
		}
		where = append(where, fmt.Sprintf("state = %d", state))
		if !outbound.State(state).Done() && q.Event == "" {
			query += d.MessageIndex
			where = append(where, "state < 2")
		}
	}
	if q.Event != "" {
		seq, ok := eventid.Seq(q.Event)
		if !ok {
			return "", nil, fault.Errorf(fault.Invalid, "%q is no event's id", q.Event)
		}
		and("event_seq", "=", seq)
		where = append(where, "event_seq <> 0") // of the index
	}
	if q.Installation != "" {
		and("installation_id", "=", q.Installation)
	}
	if q.Before > 0 {
		and("seq", "<", q.Before)
	}
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	args = append(args, page(q.Limit))
	return query + fmt.Sprintf(" ORDER BY seq DESC LIMIT $%d", len(args)), args, nil
}

// Messages implements admin.Store. An unknown state is fault.Invalid.
func (r *Reads) Messages(ctx context.Context, q admin.MessageQuery) ([]admin.Message, error) {
	query, args, err := r.d.Messages(q)
	if err != nil {
		return nil, err
	}
	var rows []messageRow
	if err := r.db.SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, fmt.Errorf("list messages: %w", r.kind(err))
	}
	all := make([]admin.Message, 0, len(rows))
	var errs []error
	for i := range rows {
		m, err := rows[i].message()
		all, errs = append(all, m), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("list messages: %w", err)
	}
	return all, nil
}
