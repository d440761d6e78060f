package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

const (
	sqlStatistics = `SELECT count(*) FROM sqlite_schema WHERE name IN ('sqlite_stat1', 'sqlite_stat4')`
	sqlNoStat1    = `DROP TABLE IF EXISTS sqlite_stat1`
	sqlNoStat4    = `DROP TABLE IF EXISTS sqlite_stat4`
)

// forgetStatistics drops what ANALYZE or PRAGMA optimize wrote, by whatever program.
//
// The statements are known, and a test knows the plan of each where there are no
// statistics: SQLite then takes every table to be large, which is what they are when
// it matters. Statistics are of the day that they were taken. Those of a store that
// was nearly empty, or had nothing waiting, make it walk every event in each step of a
// join, for minutes, once there are some hundred thousand; nothing refreshes them in time.
//
// It uses a connection of its own: the others find the schema changed and read all of it
// again, whereas the connection that drops the tables would go on with what it has read.
// A store that cannot drop them, on a full disk say, is slow at worst.
func (s *Store) forgetStatistics(ctx context.Context) {
	var n int
	err := s.last.QueryRowContext(ctx, sqlStatistics).Scan(&n)
	if err == nil && n > 0 {
		err = dropStatistics(ctx, s.path)
	}
	if err != nil {
		s.log.WarnContext(ctx, "planner statistics not dropped", "error", err, "next_step", "if questions are slow, restart when the disk has room")
	}
}

func dropStatistics(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", dsn(path, dsnWrite))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, query := range []string{sqlNoStat1, sqlNoStat4} {
		if _, err := db.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	return nil
}
