package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver of both designs

	"leasehold/admin"
	"leasehold/engine"
	"leasehold/store/sqlite"
)

// cost is what one tick of a design takes.
type cost struct {
	bytes int64 // written
	took  time.Duration
}

// perLease measures the design that this one was chosen over: every lease has an
// expiry in its own row, and its holder moves it on, one durable update each. It
// runs on a database of ours, ticks without the wait between them, and returns
// what one of them costs.
func (b *bench) perLease(ctx context.Context, leases int) (c cost, err error) {
	dir, err := os.MkdirTemp(b.dir, "leases-")
	if err != nil {
		return c, fmt.Errorf("make a folder for leases: %w", err)
	}
	path := filepath.Join(dir, "leases.db")
	if err := makeLeases(ctx, path, leases); err != nil {
		return c, err
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_synchronous=FULL&_busy_timeout=5000")
	if err != nil {
		return c, fmt.Errorf("open the leases: %w", err)
	}
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	// not_before is as wide as an expiry, and stands in the same row.
	update, err := db.PrepareContext(ctx, "UPDATE lease SET not_before = $1 WHERE id = $2")
	if err != nil {
		return c, fmt.Errorf("prepare the update of a lease: %w", err)
	}
	defer func() { err = errors.Join(err, update.Close()) }()

	ticks := 1 + 4000/leases // enough for several checkpoints
	expiry := time.Now()
	tick := func() error {
		expiry = expiry.Add(tickEvery)
		for i := range leases {
			if _, err := update.ExecContext(ctx, expiry.UnixMilli(), bot(i)); err != nil {
				return fmt.Errorf("renew a lease: %w", err)
			}
		}
		return nil
	}
	if err := tick(); err != nil { // the log has its length
		return c, err
	}
	before, err := written(os.Getpid())
	if err != nil {
		return c, err
	}
	began := time.Now()
	for range ticks {
		if err := tick(); err != nil {
			return c, err
		}
	}
	c.took = time.Since(began) / time.Duration(ticks)
	after, err := written(os.Getpid())
	c.bytes = (after - before) / int64(ticks)
	return c, err
}

// makeLeases makes a database of ours with leases that have an owner.
func makeLeases(ctx context.Context, path string, leases int) (err error) {
	s, err := sqlite.Open(ctx, path, sqlite.Options{ReserveBytes: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	rows, ids := make([]admin.Installation, leases), make([]string, leases)
	for i := range rows {
		ids[i] = bot(i)
		rows[i] = admin.Installation{ID: ids[i], Type: "websocket", Enabled: true, Config: []byte("{}")}
	}
	if _, _, _, err := s.Reconcile(ctx, rows); err != nil {
		return err
	}
	const session = "0123456789abcdef0123456789abcdef"
	if _, err := s.OpenSession(ctx, engine.SessionRequest{ID: session, Instance: "bench", Host: "bench/1"}); err != nil {
		return err
	}
	grants, err := s.Claim(ctx, session, ids)
	if err != nil {
		return err
	}
	if len(grants) != leases {
		return fmt.Errorf("got %d leases, want %d", len(grants), leases)
	}
	return nil
}
