package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/engine"
)

// crashWriters is how many batches are under way when the process is killed.
const crashWriters = 16

// crashing accepts events until it is killed, and tells each one that it was told
// to be on the disk, once it was. Its name keeps the ids of one life apart.
func crashing(path, life string) int {
	ctx := context.Background()
	fail := func(err error) int { fmt.Fprintln(os.Stderr, err); return 1 }
	s, err := Open(ctx, path, Options{ReserveBytes: -1})
	if err != nil {
		return fail(err)
	}
	if _, err := s.OpenSession(ctx, engine.SessionRequest{ID: life, Instance: "instance", Host: "boot/1"}); err != nil {
		return fail(err)
	}
	grants, err := s.Claim(ctx, life, []string{"i"})
	if err != nil || len(grants) != 1 {
		return fail(fmt.Errorf("got grants %v, %w", grants, err))
	}
	term := channel.Term{Installation: "i", Owner: life, Epoch: grants[0].Epoch}
	if term.Run, _, err = s.BeginTerm(ctx, term, "bot"); err != nil {
		return fail(err)
	}
	var mu sync.Mutex // one line at a time
	together(crashWriters, func(w int) {
		for n := 0; ; n++ {
			id := fmt.Sprintf("%s-%d-%d", life, w, n)
			b := batch(term, id)
			b.Cursor = []byte(id)
			if _, err := s.Accept(ctx, b); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			mu.Lock()
			fmt.Println(id)
			mu.Unlock()
		}
	})
	return 1
}

// backing makes backups until it is killed, and tells each one that it was told to
// be on the disk. Before each it stores an event of the backup's name.
func backing(path, dir string) int {
	ctx := context.Background()
	fail := func(err error) int { fmt.Fprintln(os.Stderr, err); return 1 }
	s, err := Open(ctx, path, Options{ReserveBytes: -1})
	if err != nil {
		return fail(err)
	}
	life := fmt.Sprint(os.Getpid())
	if _, err := s.OpenSession(ctx, engine.SessionRequest{ID: life, Instance: "instance", Host: "boot/1"}); err != nil {
		return fail(err)
	}
	grants, err := s.Claim(ctx, life, []string{"i"})
	if err != nil || len(grants) != 1 {
		return fail(fmt.Errorf("got grants %v, %w", grants, err))
	}
	term := channel.Term{Installation: "i", Owner: life, Epoch: grants[0].Epoch}
	if term.Run, _, err = s.BeginTerm(ctx, term, "bot"); err != nil {
		return fail(err)
	}
	for n := 0; ; n++ {
		name := fmt.Sprintf("%s-%d.db", life, n)
		if _, err := s.Accept(ctx, batch(term, name)); err != nil {
			return fail(err)
		}
		if _, err := s.Backup(ctx, filepath.Join(dir, name)); err != nil {
			return fail(err)
		}
		fmt.Println(name)
	}
}

func TestKilledBackup(t *testing.T) {
	t.Run("a backup that has its name is whole, whenever the process was killed", func(t *testing.T) {
		path, dir := filepath.Join(t.TempDir(), "leasehold.db"), t.TempDir()
		s := openAt(t, path, Options{})
		large(t, s, grant(t, s, "i"), "before", 60) // a copy takes a while
		must(t, s.Close())
		told := map[string]bool{}
		parts := func() (n int) {
			for _, name := range names(t, dir) {
				if strings.HasSuffix(name, partSuffix) {
					n++
				}
			}
			return n
		}
		for life := range 6 {
			left := parts()
			cmd := start(t, "backer", path, dir)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			lines := bufio.NewScanner(out)
			for stop := 1 + rand.IntN(3); lines.Scan(); {
				told[lines.Text()] = true
				if stop--; stop == 0 {
					if life%2 == 0 { // surely in the middle of the next one
						eventually(t, "another backup", func() bool { return parts() > left })
					} else {
						<-time.After(rand.N(60 * time.Millisecond))
					}
					must(t, cmd.Process.Kill())
				}
			}
			_ = cmd.Wait() // killed
		}
		whole := 0
		for _, name := range names(t, dir) {
			if !strings.HasSuffix(name, ".db") {
				continue
			}
			whole++
			delete(told, name)
			_, err := ReadBackup(t.Context(), filepath.Join(dir, name))
			must(t, err)
			r, err := OpenReader(t.Context(), filepath.Join(dir, name), Options{})
			must(t, err)
			must(t, quickCheck(t.Context(), name, r.db))
			must(t, r.Close())
			if !idsIn(t, filepath.Join(dir, name))[name] {
				t.Errorf("%s: the event that was acknowledged before it began is missing", name)
			}
		}
		for name := range told {
			t.Errorf("%s was told to be there, and is not", name)
		}
		if parts() == 0 {
			t.Error("got no backup that was killed in its middle, want some")
		}
		t.Logf("%d backups with a name, all whole; %d killed in their middle", whole, parts())
		openAt(t, path, Options{})
	})
}

func TestKill(t *testing.T) {
	t.Run("a process killed during commits loses nothing that it acknowledged, twenty times", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "leasehold.db")
		s := openAt(t, path, Options{})
		grant(t, s, "i")
		must(t, s.Close())
		told := map[string]bool{}
		for life := range 20 {
			cmd := start(t, "writer", path, fmt.Sprintf("life%d", life))
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			lines := bufio.NewScanner(out)
			for stop := 50 + rand.IntN(400); lines.Scan(); {
				told[lines.Text()] = true
				if stop--; stop == 0 {
					must(t, cmd.Process.Kill())
				}
			}
			_ = cmd.Wait() // killed

			began := time.Now()
			s := openAt(t, path, Options{})
			if took := time.Since(began); took > busy {
				t.Errorf("life %d: got %v until it was open again, want it at once", life, took)
			}
			var ids []string
			must(t, s.db.Select(&ids, "SELECT event_id FROM event"))
			stored := map[string]bool{}
			for _, id := range ids {
				stored[id] = true
			}
			for id := range told {
				if !stored[id] {
					t.Errorf("life %d: %s was acknowledged and is lost", life, id)
				}
			}
			want(t, "deliveries", count(t, s, "delivery"), len(ids))
			want(t, "events once", len(stored), len(ids))
			must(t, quickCheck(t.Context(), path, s.db))
			audited, err := s.Audit(t.Context(), 0)
			must(t, err)
			want(t, "violations", len(audited.Violations), 0)
			must(t, s.Close())
		}
		if len(told) < 20*50 {
			t.Errorf("got %d events acknowledged, want at least fifty in each life", len(told))
		}
	})
}
