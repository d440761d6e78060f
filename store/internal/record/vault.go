package record

import (
	"context"
	"fmt"
	"time"

	"leasehold/internal/vault"
)

const (
	// One statement, and so one moment.
	sqlVault = `SELECT 0 AS kind, key_id AS name, '' AS target, proof AS sealed, version AS at, 0 AS ended FROM vault
UNION ALL SELECT 1, name, '', sealed, updated_at, 0 FROM secret
UNION ALL SELECT 2, id, target, sealed, created_at, retired_at FROM signing_key
UNION ALL SELECT 3, id, '', sealed, created_at, 0 FROM follow_up_key ORDER BY 1, 2`
	sqlVaultVersion = `SELECT coalesce((SELECT version FROM vault WHERE id = 1), 0)`

	sqlPutMaster = `INSERT INTO vault(id, version, key_id, proof) VALUES (1, $1, $2, $3)
ON CONFLICT (id) DO UPDATE SET version = excluded.version, key_id = excluded.key_id, proof = excluded.proof`
	sqlPutSecret = `INSERT INTO secret(name, sealed, updated_at) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at`
	sqlPutSigningKey = `INSERT INTO signing_key(id, target, sealed, created_at, retired_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO UPDATE SET target = excluded.target, sealed = excluded.sealed, created_at = excluded.created_at, retired_at = excluded.retired_at`
	sqlPutFollowUpKey = `INSERT INTO follow_up_key(id, sealed, created_at) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET sealed = excluded.sealed, created_at = excluded.created_at`
	sqlDropSecret      = `DELETE FROM secret WHERE name = $1`
	sqlDropSigningKey  = `DELETE FROM signing_key WHERE id = $1`
	sqlDropFollowUpKey = `DELETE FROM follow_up_key WHERE id = $1`
)

// Vault implements vault.Store.
func (r *Reads) Vault(ctx context.Context) (vault.Contents, error) {
	var rows []vault.Row
	if err := r.db.SelectContext(ctx, &rows, sqlVault); err != nil {
		return vault.Contents{}, fmt.Errorf("read what is sealed: %w", r.kind(err))
	}
	return vault.Collect(rows), nil
}

// VaultVersion implements vault.Store.
func (r *Reads) VaultVersion(ctx context.Context) (version int64, err error) {
	if err := r.db.GetContext(ctx, &version, sqlVaultVersion); err != nil {
		return 0, fmt.Errorf("look at what is sealed: %w", r.kind(err))
	}
	return version, nil
}

// ChangeVault implements vault.Store.
func (w *Writes) ChangeVault(ctx context.Context, f func(now time.Time, c *vault.Contents) error) error {
	err := w.change(ctx, func(ctx context.Context, tx Tx) error {
		var rows []vault.Row
		err := tx.Each(ctx, sqlVault, func(scan func(...any) error) error {
			var r vault.Row
			err := scan(&r.Kind, &r.Name, &r.Target, &r.Sealed, &r.At, &r.Ended)
			rows = append(rows, r)
			return err
		})
		if err != nil {
			return err
		}
		next := vault.Collect(rows)
		if err := f(Time(tx.Now()), &next); err != nil {
			return err
		}
		put, drop := vault.Difference(vault.Collect(rows), next)
		return writeVault(ctx, tx, put, drop)
	})
	if err != nil {
		return fmt.Errorf("change what is sealed: %w", err)
	}
	return nil
}

func writeVault(ctx context.Context, tx Tx, put, drop []vault.Row) error {
	for _, r := range drop {
		query := sqlDropSecret
		switch r.Kind {
		case vault.RowSigningKey:
			query = sqlDropSigningKey
		case vault.RowFollowUpKey:
			query = sqlDropFollowUpKey
		}
		if _, err := tx.Exec(ctx, query, r.Name); err != nil {
			return err
		}
	}
	for _, r := range put {
		var err error
		switch r.Kind {
		case vault.RowMaster:
			_, err = tx.Exec(ctx, sqlPutMaster, r.At, r.Name, append([]byte{}, r.Sealed...)) // never NULL
		case vault.RowSecret:
			_, err = tx.Exec(ctx, sqlPutSecret, r.Name, r.Sealed, r.At)
		case vault.RowFollowUpKey:
			_, err = tx.Exec(ctx, sqlPutFollowUpKey, r.Name, r.Sealed, r.At)
		default:
			_, err = tx.Exec(ctx, sqlPutSigningKey, r.Name, r.Target, r.Sealed, r.At, r.Ended)
		}
		if err != nil {
			return err
		}
		tx.Wake("vault")
	}
	return nil
}
