// Package ladder is what the stores' migrations have in common: the files that make
// a schema, one rung each, and what it means when a database stands on another rung
// than the program. What a database says of itself each store asks in its own SQL.
package ladder

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"path"

	"github.com/pressly/goose/v3"

	"leasehold/internal/fault"
	"leasehold/store/maintenance"
)

// Rung is a migration file.
type Rung struct {
	Version int64
	Name    string // of the file
	Sum     string // its SHA-256, in hexadecimal
}

// Ladder is the migrations of one store, beside one database. The library under it
// takes a newer schema in silence, so versions are compared here.
type Ladder struct {
	Rungs    []Rung // in the order of their versions; there is one at least
	database string // its name, for people
	provider *goose.Provider
}

// Read reads the files of from. Nothing of another package's registry ends up in
// the schema. database is what people call it.
func Read(dialect goose.Dialect, db *sql.DB, database string, from fs.FS) (*Ladder, error) {
	p, err := goose.NewProvider(dialect, db, from, goose.WithDisableGlobalRegistry(true), goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	l := &Ladder{database: database, provider: p}
	for _, s := range p.ListSources() {
		name := path.Base(s.Path)
		b, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, fmt.Errorf("read migration %d: %w", s.Version, err)
		}
		sum := sha256.Sum256(b)
		l.Rungs = append(l.Rungs, Rung{s.Version, name, hex.EncodeToString(sum[:])})
	}
	return l, nil
}

// Top is the newest schema that this program knows.
func (l *Ladder) Top() int64 { return l.Rungs[len(l.Rungs)-1].Version }

// Above is what is to be done on a database with the schema current.
func (l *Ladder) Above(current int64) maintenance.Schema {
	s := maintenance.Schema{Version: current, Known: l.Top()}
	for _, r := range l.Rungs {
		if r.Version > current {
			s.Pending = append(s.Pending, r.Name)
		}
	}
	return s
}

// Same refuses to go on with a file that was edited after it was applied, since two
// databases of one version would differ. known are the sums of those that were
// applied; complete reports whether all were.
func (l *Ladder) Same(known map[int64]string) (complete bool, err error) {
	complete = true
	for _, r := range l.Rungs {
		was, applied := known[r.Version]
		if applied && was != r.Sum {
			return false, fault.Errorf(fault.Internal, "migration %s is not the one that was applied to %s: use the program that made it, or a newer release", r.Name, l.database)
		}
		complete = complete && applied
	}
	return complete, nil
}

// Newer accepts a schema above the top that says that a program which knows minReader
// may use it. Else its kind is fault.Newer, and advice is what to do.
func (l *Ladder) Newer(current, minReader int64, advice string) error {
	if minReader <= l.Top() {
		return nil
	}
	return fault.Errorf(fault.Newer, "the database %s has schema %d, of a newer version: it needs a program that knows schema %d, and this one knows schema %d; %s",
		l.database, current, minReader, l.Top(), advice)
}

// Manual refuses to change a schema that only a person changes.
func (l *Ladder) Manual(current int64) error {
	return fault.Errorf(fault.Invalid, "the database %s has schema %d, this program needs schema %d, and store.migrate is manual: run leasehold migrate", l.database, current, l.Top())
}

// Climb applies what is above the database's schema, each file in a transaction of
// its own. The caller keeps others from doing the same.
func (l *Ladder) Climb(ctx context.Context) error {
	if _, err := l.provider.Up(ctx); err != nil {
		return fmt.Errorf("upgrade the schema to %d: %w", l.Top(), err)
	}
	return nil
}
