package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"leasehold/admin"
	"leasehold/internal/apitoken"
	"leasehold/internal/fault"
)

const (
	tokenColumns   = `SELECT id, name, hash, scopes, installations, created_at, expires_at, used_at FROM token`
	sqlTokens      = tokenColumns + ` ORDER BY name`
	sqlToken       = tokenColumns + ` WHERE id = $1`
	sqlTokenNamed  = `SELECT id FROM token WHERE name = $1`
	sqlPutToken    = `INSERT INTO token(id, name, hash, scopes, installations, created_at, expires_at, used_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 0)`
	sqlRemoveToken = `DELETE FROM token WHERE id = $1`
	sqlTouchToken  = `UPDATE token SET used_at = $2 WHERE id = $1`

	sqlNoteWrite  = `INSERT INTO audit(at, caller, method, path, status) VALUES ($1, $2, $3, $4, $5)`
	sqlLastWrite  = `SELECT coalesce(max(seq), 0) FROM audit`
	sqlDropWrites = `DELETE FROM audit WHERE seq <= $1`
	sqlWrites     = `SELECT seq, at, caller, method, path, status FROM audit WHERE CAST($1 AS bigint) = 0 OR seq < CAST($1 AS bigint) ORDER BY seq DESC LIMIT $2`

	// writesKept is how many rows of the audit there are: some megabytes.
	writesKept = 10_000
)

type tokenRow struct {
	ID, Name              string
	Hash                  []byte
	Scopes, Installations string
	CreatedAt             int64 `db:"created_at"`
	ExpiresAt             int64 `db:"expires_at"`
	UsedAt                int64 `db:"used_at"`
}

func (r tokenRow) token() (apitoken.Token, error) {
	t := apitoken.Token{ID: r.ID, Name: r.Name, Hash: r.Hash, CreatedAt: Time(r.CreatedAt), ExpiresAt: Time(r.ExpiresAt), UsedAt: Time(r.UsedAt)}
	err := errors.Join(json.Unmarshal([]byte(r.Scopes), &t.Scopes), json.Unmarshal([]byte(r.Installations), &t.Installations))
	return t, err
}

// Tokens implements admin.Store.
func (r *Reads) Tokens(ctx context.Context) ([]apitoken.Token, error) {
	var rows []tokenRow
	if err := r.db.SelectContext(ctx, &rows, sqlTokens); err != nil {
		return nil, fmt.Errorf("list tokens: %w", r.kind(err))
	}
	var all []apitoken.Token
	for _, row := range rows {
		t, err := row.token()
		if err != nil {
			return nil, fmt.Errorf("read token %s: %w", row.Name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// Token implements admin.Store.
func (r *Reads) Token(ctx context.Context, id string) (apitoken.Token, error) {
	var row tokenRow
	err := r.db.GetContext(ctx, &row, sqlToken, id)
	if errors.Is(err, sql.ErrNoRows) {
		return apitoken.Token{}, noToken(id)
	}
	if err != nil {
		return apitoken.Token{}, fmt.Errorf("read a token: %w", r.kind(err))
	}
	return row.token()
}

func noToken(id string) error {
	return fault.Errorf(fault.NotFound, "there is no token %s; see leasehold tokens list", id)
}

// PutToken implements admin.Store.
func (w *Writes) PutToken(ctx context.Context, t apitoken.Token) error {
	scopes, err := json.Marshal(append([]string{}, t.Scopes...))
	if err != nil {
		return fmt.Errorf("put token %s: %w", t.Name, err)
	}
	patterns, err := json.Marshal(append([]string{}, t.Installations...))
	if err != nil {
		return fmt.Errorf("put token %s: %w", t.Name, err)
	}
	err = w.change(ctx, func(ctx context.Context, tx Tx) error {
		var there string
		switch found, err := tx.Get(ctx, sqlTokenNamed, []any{t.Name}, &there); {
		case err != nil:
			return err
		case found && there != t.ID:
			return fault.Errorf(fault.Conflict, "there is a token %s already; revoke it, or choose another name", t.Name)
		case found:
			return nil // the answer to its first write was lost
		}
		_, err := tx.Exec(ctx, sqlPutToken, t.ID, t.Name, t.Hash, string(scopes), string(patterns), tx.Now(), Millis(t.ExpiresAt))
		return err
	})
	if err != nil {
		return fmt.Errorf("put token %s: %w", t.Name, err)
	}
	return nil
}

// RemoveToken implements admin.Store.
func (w *Writes) RemoveToken(ctx context.Context, id string) error {
	err := w.change(ctx, func(ctx context.Context, tx Tx) error {
		if _, err := tx.Get(ctx, sqlTokenNamed, []any{id}, &id); err != nil { // a name will do, too
			return err
		}
		n, err := tx.Exec(ctx, sqlRemoveToken, id)
		if err == nil && n == 0 {
			err = noToken(id)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("revoke a token: %w", err)
	}
	return nil
}

// TouchToken implements admin.Store.
func (w *Writes) TouchToken(ctx context.Context, id string) error {
	err := w.change(ctx, func(ctx context.Context, tx Tx) error {
		tx.Note()
		_, err := tx.Exec(ctx, sqlTouchToken, id, tx.Now())
		return err
	})
	if err != nil {
		return fmt.Errorf("note the use of a token: %w", err)
	}
	return nil
}

// NoteWrite implements admin.Store.
func (w *Writes) NoteWrite(ctx context.Context, n admin.WriteNote) error {
	err := w.change(ctx, func(ctx context.Context, tx Tx) error {
		tx.Note()
		if _, err := tx.Exec(ctx, sqlNoteWrite, tx.Now(), n.Caller, n.Method, n.Path, n.Status); err != nil {
			return err
		}
		var last int64
		if _, err := tx.Get(ctx, sqlLastWrite, nil, &last); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sqlDropWrites, last-writesKept)
		return err
	})
	if err != nil {
		return fmt.Errorf("note a write: %w", err)
	}
	return nil
}

// WriteNotes implements admin.Store.
func (r *Reads) WriteNotes(ctx context.Context, before int64, limit int) ([]admin.WriteNote, error) {
	var rows []struct {
		Seq, At              int64
		Caller, Method, Path string
		Status               int
	}
	if err := r.db.SelectContext(ctx, &rows, sqlWrites, before, page(limit)); err != nil {
		return nil, fmt.Errorf("read the audit: %w", r.kind(err))
	}
	all := make([]admin.WriteNote, 0, len(rows))
	for _, n := range rows {
		all = append(all, admin.WriteNote{Seq: n.Seq, At: Time(n.At), Caller: n.Caller, Method: n.Method, Path: n.Path, Status: n.Status})
	}
	return all, nil
}
