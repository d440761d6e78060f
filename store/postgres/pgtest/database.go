package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Database makes an empty database and returns its URL. It is dropped at the
// test's end, whoever is connected.
func (s *Server) Database(t testing.TB) string { return s.Copy(t, "template1") }

// Copy makes a database that is a copy of another, to which nobody may be
// connected.
func (s *Server) Copy(t testing.TB, of string) string {
	t.Helper()
	s.mu.Lock()
	s.made++
	name := fmt.Sprintf("test_%d", s.made)
	s.mu.Unlock()
	s.Exec(t, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, of))
	t.Cleanup(func() { s.Exec(t, fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name)) })
	return s.URL(name)
}

// URL names a database of this server, over its Unix socket.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://%s@/%s?host=%s&port=%s", Role, database, url.QueryEscape(s.dir), strconv.Itoa(s.port))
}

// Exec runs statements as the superuser, outside of any database under test.
func (s *Server) Exec(t testing.TB, sql string) {
	t.Helper()
	Exec(t, s.URL("postgres"), sql)
}

// Exec runs statements in the database that url names.
func Exec(t testing.TB, url, sql string, args ...any) {
	t.Helper()
	with(t, url, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql, args...)
		return err
	})
}

// Get scans the one row that a query answers with, in the database that url names.
func Get(t testing.TB, url, sql string, into ...any) {
	t.Helper()
	with(t, url, func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, sql).Scan(into...) })
}

func with(t testing.TB, url string, f func(ctx context.Context, conn *pgx.Conn) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), startWithin) // a cleanup runs after the test's own
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }() // what it did is committed
	if err := f(ctx, conn); err != nil {
		t.Fatal(err)
	}
}

// Eventually waits until f holds, for as long as a machine with other things to do
// may need.
func Eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(startWithin); !f(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it does not come", what)
		}
		<-time.After(lookEvery)
	}
}

// Hold runs a statement in a transaction that stays open until release is called, or
// the test's end.
func Hold(t testing.TB, url, sql string) (release func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "BEGIN; "+sql); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() { _ = conn.Close(ctx) }) // which rolls it back
	t.Cleanup(release)
	return release
}
