package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/engine"
	"leasehold/internal/fault"
	"leasehold/store/postgres"
	"leasehold/store/postgres/pgtest"
)

// proxy stands between a store and its server, and swallows what it is told to: the
// connections stay open, and nobody answers any more.
type proxy struct {
	l      net.Listener
	to     string
	hole   atomic.Bool
	mu     sync.Mutex // guards conns
	conns  []net.Conn
	copies sync.WaitGroup
}

func newProxy(t *testing.T, s *pgtest.Server) *proxy {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, to: s.Addr()}
	p.copies.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.copies.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, in, out)
		p.mu.Unlock()
		p.copies.Go(func() { p.copy(in, out) })
		p.copies.Go(func() { p.copy(out, in) })
	}
}

// copy passes on what comes. A connection that is in the hole stays in it.
func (p *proxy) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if p.hole.Load() {
			_, _ = io.Copy(io.Discard, from)
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

// through is a URL of a server's database that goes through the proxy.
func (p *proxy) through(t *testing.T, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.Host, u.RawQuery = p.l.Addr().String(), "sslmode=disable"
	return u.String()
}

// hold makes the installation "i", opens the session "a" and begins a term of it.
func hold(t testing.TB, s *postgres.Store) channel.Term {
	t.Helper()
	ctx := t.Context()
	put(t, s)
	if _, err := s.OpenSession(ctx, engine.SessionRequest{ID: "a", Instance: "instance of a", Host: "boot/1", TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	grants, err := s.Claim(ctx, "a", []string{"i"})
	if err != nil || len(grants) != 1 {
		t.Fatalf("got grants %v, %v, want one", grants, err)
	}
	term := channel.Term{Installation: "i", Owner: "a", Epoch: grants[0].Epoch}
	if term.Run, _, err = s.BeginTerm(ctx, term, "bot"); err != nil {
		t.Fatal(err)
	}
	return term
}

func accept(t testing.TB, s *postgres.Store, term channel.Term, id string) error {
	t.Helper()
	_, err := s.Accept(t.Context(), engine.AcceptRequest{Term: term, Identity: "bot", Events: []engine.Heard{{
		Event: channel.Event{ID: id, Type: "message"}, Body: []byte(`{}`), Targets: []string{"app"},
	}}})
	return err
}

// renew renews once, for as long as an attempt may take.
func renew(t testing.TB, s *postgres.Store, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	_, err := s.RenewSession(ctx, "a", time.Hour)
	return err
}

func TestBlackHole(t *testing.T) {
	server := pgtest.Shared(t)
	p := newProxy(t, server)
	s := open(t, p.through(t, server.Database(t)), postgres.Options{})
	term := hold(t, s)
	if err := renew(t, s, time.Minute); err != nil {
		t.Fatal(err)
	}

	p.hole.Store(true)
	began := time.Now()
	err := renew(t, s, 500*time.Millisecond)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a renewal without an answer: got %v, want its context's end", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("a renewal without an answer: got it back after %v, want it when its context ends", took)
	}
	if err := renew(t, s, 500*time.Millisecond); err == nil {
		t.Error("a second renewal: got success through a hole, want an error")
	}

	p.hole.Store(false)
	if err := renew(t, s, time.Minute); err != nil {
		t.Errorf("the next renewal, on a connection of its own: got %v, want success", err)
	}
	pgtest.Eventually(t, "an accept after the hole", func() bool { return accept(t, s, term, "after") == nil })
}

func TestRestart(t *testing.T) {
	server := pgtest.New(t)
	s := open(t, server.Database(t), postgres.Options{})
	term := hold(t, s)
	if err := errors.Join(renew(t, s, time.Minute), accept(t, s, term, "before")); err != nil {
		t.Fatal(err)
	}
	changes := s.Watch(t.Context())

	server.Stop(t)
	for what, err := range map[string]error{"renew": renew(t, s, time.Minute), "accept": accept(t, s, term, "meanwhile")} {
		if !fault.Is(err, fault.Temporary) {
			t.Errorf("%s while the server is down: got %v, want that it does not answer", what, err)
		}
	}
	if _, err := s.List(t.Context(), 0); !fault.Is(err, fault.Temporary) {
		t.Errorf("list while the server is down: got %v, want that it does not answer", err)
	}
	select { // what was said while it listened
	case <-changes:
	default:
	}

	server.Start(t)
	if err := renew(t, s, time.Minute); err != nil {
		t.Errorf("renew after the restart: got %v, want success", err)
	}
	if err := accept(t, s, term, "after"); err != nil {
		t.Errorf("accept after the restart: got %v, want success", err)
	}
	select { // it listens again, and says so
	case <-changes:
	case <-time.After(time.Minute):
		t.Error("got no word to look after the restart, want one")
	}
}

// A renewal does not wait for events: here every connection of the pool is inside a
// transaction that somebody keeps waiting.
func TestRenewalsWaitForNobody(t *testing.T) {
	const renewals = 200
	url := pgtest.Shared(t).Database(t)
	s := open(t, url, postgres.Options{})
	hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	release := pgtest.Hold(t, url, "LOCK TABLE installation")
	var wg sync.WaitGroup
	for n := range 20 { // more than the pool has connections
		wg.Go(func() {
			_, err := s.Installation(ctx, fmt.Sprintf("i%d", n))
			if err != nil && !fault.Is(err, fault.NotFound) && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	pgtest.Eventually(t, "a pool without a free connection", func() bool {
		var waiting int
		pgtest.Get(t, url, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'", &waiting)
		return waiting >= 8
	})
	var took []time.Duration
	for range renewals {
		began := time.Now()
		if err := renew(t, s, time.Minute); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	release() // until here the pool could do nothing: what had waited for it would have ended in an error
	wg.Wait()
	slices.Sort(took)
	t.Logf("%d renewals beside a pool that waits: median %v, p99 %v", renewals, took[renewals/2], took[renewals*99/100])
}
