package postgres

import (
	"context"
	"errors"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"leasehold/store/maintenance"
)

// Schema compares the schema of the database that url names with the one that this
// program knows, and changes nothing. Its errors are those of Open.
func Schema(ctx context.Context, url string, o Options) (s maintenance.Schema, err error) {
	const doing = "look at the schema"
	t, err := parse(url, o)
	if err != nil {
		return s, failed(doing, err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, t.pool)
	if err != nil {
		return s, failed(doing, t.classify(err))
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	m, err := newMigrator(db, pool, t.String(), slog.New(slog.DiscardHandler))
	if err == nil {
		s, err = m.schema(ctx)
	}
	return s, failed(doing, t.classify(errors.Join(err, db.Close())))
}
