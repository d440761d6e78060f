package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"leasehold/channel"
	"leasehold/engine"
	"leasehold/store/internal/record"
)

// sqlSpend is fenced as sqlAccept is, by owner and epoch. A window that begins
// before the stored one counts as the stored one: a clock that was set back allows
// nothing twice.
const sqlSpend = `WITH f AS MATERIALIZED (SELECT l.id FROM lease l WHERE l.id = $1 AND l.epoch = $2 AND l.owner = $3
   AND EXISTS (SELECT 1 FROM session s WHERE s.session_id = $3) FOR SHARE OF l),
spent AS (INSERT INTO connect_budget AS b (lease_id, window_start, used) SELECT f.id, $4, $5 FROM f WHERE $5::int <= $6::int
  ON CONFLICT (lease_id) DO UPDATE SET window_start = greatest(b.window_start, excluded.window_start),
         used = excluded.used + CASE WHEN excluded.window_start > b.window_start THEN 0 ELSE b.used END
   WHERE excluded.used + CASE WHEN excluded.window_start > b.window_start THEN 0 ELSE b.used END <= $6
  RETURNING used)
SELECT EXISTS (SELECT 1 FROM f), EXISTS (SELECT 1 FROM spent),
       coalesce((SELECT used FROM spent), (SELECT used FROM connect_budget WHERE lease_id = $1 AND window_start >= $4), 0)`

// spending is the answer to Spend.
type spending struct {
	used     int
	held, ok bool
}

// Spend implements engine.Store.
func (s *Store) Spend(ctx context.Context, t channel.Term, start time.Time, n, limit int) (int, bool, error) {
	out, err := write(ctx, s, func(ctx context.Context) (out spending, err error) {
		err = s.atomically(ctx, s.pool, step{
			sql: sqlSpend, args: []any{t.Installation, t.Epoch, t.Owner, record.Millis(start), n, limit},
			scan: func(rows pgx.Rows) error { return rows.Scan(&out.held, &out.ok, &out.used) },
		})
		if err == nil && !out.held {
			err = engine.ErrFenced
		}
		return out, err
	})
	return out.used, out.ok, failed("spend the connect budget of "+t.Installation, err)
}
