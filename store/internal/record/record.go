// Package record is what the databases have in common of the rows that people look at
// and change: what a row holds, what it is for admin.Store, and what must hold
// between rows when one is changed. A statement that both take stands here; where
// they differ, each store brings its own in a Dialect.
//
// It opens nothing and commits nothing. A Change is the store's: it decides what a
// transaction is, who waits for it, and who is woken afterwards.
package record

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"leasehold/admin"
	"leasehold/delivery"
)

// Dialect is what a database says in its own words.
type Dialect struct {
	// Backlogs is what waits, by lease: id, count, and when the oldest was accepted.
	Backlogs string
	// CountPending and CountDead count the deliveries of one state.
	CountPending, CountDead string
	// CountMessages counts those that wait.
	CountMessages string
	// Journeys are the deliveries of a list of events, Payloads what is sent of them. The
	// list, made by Seqs, is the only parameter.
	Journeys, Payloads string
	Seqs               func([]int64) (any, error)
	// Keep: its driver reads and plans a statement each time unless it is prepared.
	Keep bool
	// Events writes the statement for a query whose limit is set, from EventColumns.
	Events func(admin.EventQuery) (string, []any)
	// Replayable writes the statement for the deliveries that a query looks at: the
	// columns of DeliveryColumns, and whether it is one of those, as chosen.
	Replayable func(admin.ReplayQuery) (string, []any)
	// CountWaiting counts the deliveries that wait for target $1; EndWaiting ends at most
	// $4 of them, the oldest, as dead letters at $2 with the reason $3.
	CountWaiting, EndWaiting string
	// MoveMessages gives those of installation $1 that wait under lease $2 to lease $3.
	MoveMessages string

	// DeliveryIndex stands between the deliveries of one state and the JOIN behind
	// them; MessageIndex behind the messages that wait. "" = the planner finds it.
	DeliveryIndex map[delivery.State]string
	MessageIndex  string

	// Bytes is the size of the database on disk.
	Bytes func(ctx context.Context, db *sqlx.DB) (int64, error)
}

// Reads answers the questions of admin.Store and delivery.Outbox. They see what was
// committed before the call.
type Reads struct {
	db   *sqlx.DB
	kind func(error) error
	d    *Dialect

	keeping sync.Mutex           // guards kept
	kept    map[string]*sql.Stmt // by their text
}

// Over reads db. kind gives an error of it its fault.Kind.
func Over(db *sqlx.DB, kind func(error) error, d *Dialect) *Reads {
	return &Reads{db: db, kind: kind, d: d, kept: map[string]*sql.Stmt{}}
}

// often asks what delivery asks all day. A database that does not keep statements by
// itself would read and plan each anew, which takes longer than a short answer.
func (r *Reads) often(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if !r.d.Keep {
		return r.db.QueryContext(ctx, query, args...)
	}
	s, err := r.prepared(ctx, query) //nolint:sqlclosecheck // it stays prepared as long as the database is open
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

func (r *Reads) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	r.keeping.Lock()
	defer r.keeping.Unlock()
	if s, ok := r.kept[query]; ok {
		return s, nil
	}
	s, err := r.db.PrepareContext(ctx, query) //nolint:sqlclosecheck // it ends with the database
	if err == nil {
		r.kept[query] = s
	}
	return s, err
}

const (
	defaultPage = 50
	maxPage     = 500
)

// page is how many rows a list has that asks for limit.
func page(limit int) int {
	if limit <= 0 {
		return defaultPage
	}
	return min(limit, maxPage)
}

// Plain is text as every database stores it: without the NUL and the broken UTF-8
// that somebody else's words may have. It is for what only people read.
func Plain(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Millis is how a time is stored; 0 stands for no time at all.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Time is the time that Millis stored, in UTC.
func Time(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
