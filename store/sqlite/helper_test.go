package sqlite

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/engine"
)

// busy is what a loaded machine may take for what waits for nobody: it is below the
// time for which a statement waits for a lock of another program.
const busy = 4 * time.Second

// openTest opens a new database of the test's own.
func openTest(t testing.TB, o Options) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "leasehold.db"), o)
}

// openAt opens the database at path until the test's end.
func openAt(t testing.TB, path string, o Options) *Store {
	t.Helper()
	if o.ReserveBytes == 0 {
		o.ReserveBytes = -1
	}
	s, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// grant makes an installation of the id and begins a term of it.
func grant(t testing.TB, s *Store, id string) channel.Term {
	t.Helper()
	ctx := t.Context()
	if _, err := s.PutInstallation(ctx, admin.Installation{ID: id, Type: "heartbeat", Enabled: true, Source: "api"}, 0); err != nil {
		t.Fatal(err)
	}
	return again(t, s, "session", id)
}

// again opens a session and begins a term of an installation that is there.
func again(t testing.TB, s *Store, session, id string) channel.Term {
	t.Helper()
	ctx := t.Context()
	if _, err := s.OpenSession(ctx, engine.SessionRequest{ID: session, Instance: "instance", Host: "boot/1", TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	grants, err := s.Claim(ctx, session, []string{id})
	if err != nil || len(grants) != 1 {
		t.Fatalf("got grants %v, %v, want one", grants, err)
	}
	term := channel.Term{Installation: id, Owner: session, Epoch: grants[0].Epoch}
	if term.Run, _, err = s.BeginTerm(ctx, term, "bot"); err != nil {
		t.Fatal(err)
	}
	return term
}

func heard(id string, targets ...string) engine.Heard {
	return engine.Heard{
		Event:   channel.Event{ID: id, Type: "message", Time: time.UnixMilli(1000), Conversation: channel.Ref{ID: "c"}},
		Body:    fmt.Appendf(nil, `{"id":%q}`, id),
		Targets: targets,
	}
}

// batch is a request of events with these ids for the target "app".
func batch(t channel.Term, ids ...string) engine.AcceptRequest {
	r := engine.AcceptRequest{Term: t, Identity: "bot"}
	for _, id := range ids {
		r.Events = append(r.Events, heard(id, "app"))
	}
	return r
}

func take(t testing.TB, s *Store, term channel.Term, ids ...string) {
	t.Helper()
	if _, err := s.Accept(t.Context(), batch(term, ids...)); err != nil {
		t.Fatal(err)
	}
}

// count is the number of rows that a table holds.
func count(t testing.TB, s *Store, table string) (n int) {
	t.Helper()
	if err := s.db.Get(&n, "SELECT count(*) FROM "+table); err != nil {
		t.Fatal(err)
	}
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want[V comparable](t testing.TB, what string, got, wanted V) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

// wantText checks that an error says each of the words.
func wantText(t testing.TB, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("got %v, want it to say %q", err, w)
		}
	}
}

// eventually waits until f holds, for as long as a machine with other things to do may need.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !f(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it does not come", what)
		}
		pause()
	}
}

// pause lets others run between two looks at a condition.
func pause() { <-time.After(2 * time.Millisecond) }

// role makes this test binary another program: a test starts it again with
// roleEnv, and TestMain plays the role instead of running tests.
const roleEnv = "LEASEHOLD_TEST_ROLE"

// start runs this binary in a role.
func start(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleEnv); role {
	case "":
		os.Exit(m.Run())
	case "holder":
		os.Exit(holder(os.Args[1]))
	case "writer":
		os.Exit(crashing(os.Args[1], os.Args[2]))
	case "backer":
		os.Exit(backing(os.Args[1], os.Args[2]))
	default:
		fmt.Fprintln(os.Stderr, "unknown role", role)
		os.Exit(2)
	}
}

// together runs f n times at once and waits.
func together(n int, f func(n int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
