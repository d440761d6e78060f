package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"

	"leasehold/store/maintenance"
)

// Schema compares the schema of the database at path with the one that this program
// knows, beside whoever has it open, and changes nothing. Where there is no database,
// every migration is pending.
func Schema(ctx context.Context, path string, o Options) (s maintenance.Schema, err error) {
	const doing = "look at the schema"
	if err := setUpDriver(); err != nil {
		return s, err
	}
	source := ":memory:" // as empty as one that is not there
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		if path, err = resolve(path, o.ForceNetworkFS); err != nil {
			return s, failed(doing, err)
		}
		if _, err := readHeader(path); err != nil {
			return s, failed(doing, err)
		}
		source = dsn(path, dsnRead)
	}
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return s, failed(doing, classify(path, err))
	}
	m, err := newMigrator(db, path, migrations())
	if err == nil {
		s, err = m.schema(ctx)
	}
	return s, failed(doing, classify(path, errors.Join(err, db.Close())))
}
