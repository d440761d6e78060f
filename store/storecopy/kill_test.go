package storecopy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"leasehold/admin"
	"leasehold/store"
	"leasehold/store/postgres/pgtest"
	"leasehold/store/storecopy"
)

// childEnv holds FROM, TO and AT of a process that copies and is killed at a batch.
const childEnv = "LEASEHOLD_COPY_"

func TestMain(m *testing.M) {
	if from := os.Getenv(childEnv + "FROM"); from != "" {
		fmt.Fprintln(os.Stderr, dying(from, os.Getenv(childEnv+"TO"), os.Getenv(childEnv+"AT")))
		os.Exit(1)
	}
	os.Exit(pgtest.Main(m))
}

// dying copies, and kills its own process at the batch at: before it is written, and
// every second time after.
func dying(from, to, at string) error {
	ctx := context.Background()
	n, err := strconv.Atoi(at)
	if err != nil {
		return err
	}
	var ends []storecopy.Target
	for _, url := range []string{from, to} {
		s, err := store.Open(ctx, url, target)
		if err != nil {
			return err
		}
		e, err := s.Copying(ctx)
		if err != nil {
			return err
		}
		ends = append(ends, e)
	}
	_, err = storecopy.Copy(ctx, ends[0], &mortal{Target: ends[1], at: n}, quiet)
	return errors.Join(errors.New("it was not killed"), err)
}

type mortal struct {
	storecopy.Target
	at, batches int
}

func (m *mortal) WriteRows(ctx context.Context, t storecopy.Table, rows []storecopy.Row) error {
	m.batches++
	if m.batches < m.at {
		return m.Target.WriteRows(ctx, t, rows)
	}
	if m.at%2 == 0 {
		if err := m.Target.WriteRows(ctx, t, rows); err != nil {
			return err
		}
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Kill(); err != nil {
		return err
	}
	select {}
}

func TestKilled(t *testing.T) {
	for name, url := range map[string]func(t *testing.T) string{
		"a file": func(t *testing.T) string { return file(t) }, "a server": func(t *testing.T) string { return pgtest.Shared(t).Database(t) },
	} {
		t.Run("a copy to "+name+" that is killed again and again goes on each time", func(t *testing.T) {
			from, to := file(t), url(t)
			s, err := store.Open(t.Context(), from, target)
			if err != nil {
				t.Fatal(err)
			}
			const rows = 1100
			fill(t, s, rows)
			whole := len(carried(end(t, s))) + 1 // batches: the events take two
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			written := 0
			for _, at := range []int{2, 5, 4} {
				written += at - 1 + (at+1)%2
				child := exec.CommandContext(t.Context(), os.Args[0])
				child.Env = append(os.Environ(), childEnv+"FROM="+from, childEnv+"TO="+to, childEnv+"AT="+strconv.Itoa(at))
				out, err := child.CombinedOutput()
				if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() == 1 {
					t.Fatalf("got %v, %s, want a process that was killed", err, out)
				}
			}
			w := &watched{Target: end(t, open(t, to, target))}
			done, err := storecopy.Copy(t.Context(), end(t, open(t, from, target)), w, quiet)
			if err != nil || !done.Resumed || len(done.Again) > 0 {
				t.Fatalf("got %+v, %v, want that it goes on and nothing is copied twice", done, err)
			}
			for _, table := range done.Tables {
				if want := share(table.Name, rows); table.Rows != int64(want) {
					t.Errorf("%s: got %d rows, want %d", table.Name, table.Rows, want)
				}
			}
			if w.batches != whole-written {
				t.Errorf("got %d batches at the end, want %d: %d were there", w.batches, whole-written, written)
			}
		})
	}

	t.Run("what changed in the source between two runs is copied from the beginning", func(t *testing.T) {
		from, to := open(t, file(t), target), open(t, pgtest.Shared(t).Database(t), target)
		fill(t, from, 5)
		stopped := errors.New("stopped")
		w := &watched{Target: end(t, to), before: func(table string, _ int) error {
			if table == "lease" {
				return stopped
			}
			return nil
		}}
		if _, err := storecopy.Copy(t.Context(), end(t, from), w, quiet); !errors.Is(err, stopped) {
			t.Fatalf("got %v, want that it stops at the leases", err)
		}
		added := admin.Installation{ID: "before the others", Type: "heartbeat", Source: admin.SourceAPI}
		if _, err := from.PutInstallation(t.Context(), added, 0); err != nil {
			t.Fatal(err)
		}
		done, err := storecopy.Copy(t.Context(), end(t, from), end(t, to), quiet)
		if err != nil || len(done.Again) != 1 || done.Again[0] != "installation" {
			t.Errorf("got %v copied again, %v, want the installations", done.Again, err)
		}
		if _, err := to.Installation(t.Context(), added.ID); err != nil {
			t.Errorf("got %v, want the installation that was added", err)
		}
	})
}
