package sqlite

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
	"leasehold/internal/fault"
)

const (
	messageColumns = `SELECT seq, id, installation_id, lease_id, idempotency_key, op, conversation, thread, message_id, state, attempts, next_attempt,
       last_error, receipt, created_at, expires_at, ended_at`
	messageBody   = `, body FROM message`
	sqlMessage    = messageColumns + messageBody + ` WHERE id = $1`
	sqlMessageKey = messageColumns + messageBody + ` WHERE installation_id = $1 AND idempotency_key = $2 AND idempotency_key <> ''`

	// The lease is its carrier's. Nothing is written where there is no installation,
	// or where a message has the id or the key already.
	sqlPost = `INSERT INTO message(id, installation_id, lease_id, idempotency_key, op, conversation, thread, message_id, created_at, expires_at, body)
SELECT $1, i.id, CASE i.via WHEN '' THEN i.id ELSE i.via END, $3, $4, $5, $6, $7, $8, $9, $10 FROM installation i WHERE i.id = $2 AND i.removed = 0
ON CONFLICT DO NOTHING`
)

type messageRow struct {
	Seq            int64
	ID             string
	InstallationID string `db:"installation_id"`
	LeaseID        string `db:"lease_id"`
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
		CreatedAt: fromMillis(r.CreatedAt), ExpiresAt: fromMillis(r.ExpiresAt), EndedAt: fromMillis(r.EndedAt), Lease: r.LeaseID,
	}
	if outbound.State(r.State) == outbound.Queued {
		m.NextAttempt = fromMillis(r.NextAttempt)
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
	content := channel.Message{ID: r.ID}
	err := outbound.DecodeBody(r.Body, &content)
	m.Text, m.Native = content.Text, content.Native
	return m, err
}

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
			g.w.now, g.w.now+m.ExpiresIn.Milliseconds(), body)
		if err != nil || n > 0 {
			return nil, err
		}
		there, err := g.w.exists(`SELECT 1 FROM installation WHERE id = $1 AND removed = 0`, m.Installation)
		if err == nil && !there {
			return noInstallation(m.Installation), nil
		}
		return nil, err
	})
	if err != nil {
		return admin.Message{}, failed("post a message", err)
	}
	return s.posted(ctx, m)
}

// posted reads what m is stored as: itself, or the first of its key.
func (s *Store) posted(ctx context.Context, m outbound.Message) (admin.Message, error) {
	if m.IdempotencyKey != "" {
		return s.oneMessage(ctx, m.ID, sqlMessageKey, m.Installation, m.IdempotencyKey)
	}
	return s.oneMessage(ctx, m.ID, sqlMessage, m.ID)
}

// Message implements admin.Store.
func (r *reads) Message(ctx context.Context, id string) (admin.Message, error) {
	return r.oneMessage(ctx, id, sqlMessage, id)
}

func (r *reads) oneMessage(ctx context.Context, id, query string, args ...any) (admin.Message, error) {
	var rows []messageRow
	if err := r.db.SelectContext(ctx, &rows, query, args...); err != nil {
		return admin.Message{}, failed("read message "+id, r.kind(err))
	}
	if len(rows) == 0 {
		return admin.Message{}, fault.Errorf(fault.NotFound, "there is no message %s: it may be past its retention", id)
	}
	m, err := rows[0].message()
	return m, failed("read message "+id, err)
}

// messageQuery writes the statement for q. What waits is found in the index that
// holds only that; a parameter in place of the number would hide it.
func messageQuery(q admin.MessageQuery) (string, []any, error) {
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
		if !outbound.State(state).Done() {
			query += " INDEXED BY message_waiting"
			where = append(where, "state < 2")
		}
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
func (r *reads) Messages(ctx context.Context, q admin.MessageQuery) ([]admin.Message, error) {
	query, args, err := messageQuery(q)
	if err != nil {
		return nil, err
	}
	var rows []messageRow
	if err := r.db.SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, failed("list messages", r.kind(err))
	}
	all := make([]admin.Message, 0, len(rows))
	var errs []error
	for i := range rows {
		m, err := rows[i].message()
		all, errs = append(all, m), append(errs, err)
	}
	return all, failed("list messages", errors.Join(errs...))
}
