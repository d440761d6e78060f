//go:build unix

package evidence_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"leasehold/channel/websocket/websocketfake"
	"leasehold/internal/fault"
)

// hashes are the files under a folder by what is in them, without what belongs to
// a process and not to the store: who it is, and its index of the log.
func hashes(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".owner") || strings.HasSuffix(path, "-shm") {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%d bytes %x", len(b), sha256.Sum256(b))
		return err
	}))
	return all
}

// untouched checks that every file is as it was.
func untouched(t testing.TB, dir string, before map[string]string) {
	t.Helper()
	now := hashes(t, dir)
	for path, was := range before {
		if now[path] != was {
			t.Errorf("%s: got %s, want it as it was: %s", path, now[path], was)
		}
	}
}

// refuses runs the program and wants it to end by itself with an exit code and
// the words, which hold the fix, and to leave every file as it was.
func (w *world) refuses(code int, words ...string) {
	w.Helper()
	before := hashes(w.T, w.data(""))
	p := w.start()
	want(w.T, "exit code", p.exit(longest), code)
	for _, word := range words {
		if !strings.Contains(p.said(), word) {
			w.Errorf("got\n%s\nwant it to say %q", p.tail(), word)
		}
	}
	untouched(w.T, w.data(""), before)
}

// lived is a world whose process has taken some events and ended.
func lived(t *testing.T, parent string) *world {
	t.Helper()
	w := newWorld(t, parent, 3)
	w.say(20)
	p := w.start()
	w.arrived(longest)
	p.stop()
	return w
}

func TestBadStore(t *testing.T) {
	t.Run("a database whose pages are garbage after a kill is named with the fix, and not written to", func(t *testing.T) {
		w := lived(t, "") // what it wrote is in the file and not in the log alone
		p := w.start()
		w.connected()
		p.kill()
		f, err := os.OpenFile(w.database(), os.O_RDWR, 0)
		must(t, err)
		info, err := f.Stat()
		must(t, err)
		for at := int64(4096); at < info.Size(); at += 4096 {
			_, err = f.WriteAt([]byte(strings.Repeat("\xa5", 4096)), at)
			must(t, err)
		}
		must(t, f.Close())
		w.refuses(fault.ExitFailed, w.database()+" is damaged", "restore a backup")
	})

	t.Run("what is no database is named with the fix, and not written to", func(t *testing.T) {
		w := lived(t, "")
		must(t, os.WriteFile(w.database(), []byte(strings.Repeat("not a database\n", 1000)), 0o600))
		w.refuses(fault.ExitFailed, w.database()+" is damaged", "restore a backup")
	})

	t.Run("a database of a newer version is left to it", func(t *testing.T) {
		w := lived(t, "")
		change(t, w.database(), `UPDATE schema_info SET min_reader = 9999; INSERT INTO goose_db_version(version_id, is_applied) VALUES (9999, 1)`)
		w.refuses(fault.ExitConfig, w.database(), "install the newer version")
	})

	t.Run("a database that is gone is not begun anew in silence", func(t *testing.T) {
		w := lived(t, "")
		must(t, os.Remove(w.database()))
		w.refuses(fault.ExitFailed, w.database()+" is not there", "restore a backup", "--new-store")
		_, err := os.Stat(w.database())
		want(t, "still gone", errors.Is(err, fs.ErrNotExist), true)
	})
}

// change executes statements on a database that nobody has open.
func change(t testing.TB, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_busy_timeout=30000") // leasehold may be writing just now
	must(t, err)
	_, err = db.ExecContext(t.Context(), statements)
	must(t, errors.Join(err, db.Close()))
}

func TestRemovedWhileRunning(t *testing.T) {
	t.Parallel() // it waits, mostly
	for name, remove := range map[string]func(w *world) (back func() error, err error){
		"removed": func(w *world) (func() error, error) { return nil, os.Remove(w.database()) },
		"moved away, and back": func(w *world) (func() error, error) {
			away := filepath.Join(w.dir, "away")
			move := func(from, to string) error {
				return errors.Join(os.Rename(from, to), os.Rename(from+"-wal", to+"-wal"), os.Rename(from+"-shm", to+"-shm"))
			}
			return func() error { return move(away, w.database()) }, move(w.database(), away)
		},
	} {
		t.Run("nothing is acknowledged into a database that is "+name+", and nothing is made in its place", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "", 5)
			p := w.start()
			w.connected()
			acks := w.steps.nth(websocketfake.StepAck, 50)
			w.say(100)
			w.reach(acks)
			back, err := remove(w)
			must(t, err)
			for range 20 {
				w.say(5)
				pause(t, 10*time.Millisecond)
			}
			code := p.exit(longest)
			want(t, "exit code", code, fault.ExitFailed)
			if text := w.database() + " was removed or replaced while it was open"; !strings.Contains(p.said(), text) || !strings.Contains(p.said(), "put the file back") {
				t.Errorf("got\n%s\nwant it to say %q and what to do", p.tail(), text)
			}
			_, err = os.Stat(w.database())
			want(t, "nothing in its place", errors.Is(err, fs.ErrNotExist), true)
			if w.acked() == w.pushed {
				t.Errorf("got all %d events acknowledged, want those that came later not", w.pushed)
			}
			w.refuses(fault.ExitFailed, "is not there", "restore a backup", "--new-store")
			if back == nil {
				return
			}
			must(t, back())
			acked := w.acked()
			w.kept()
			p = w.start()
			w.arrived(longest)
			p.stop()
			w.judge()
			t.Logf("%d of %d events acknowledged when it was moved, all of them in the file that was moved back", acked, w.pushed)
		})
	}
}

// roleEnv makes this test binary another program than the tests.
const roleEnv = "LEASEHOLD_EVIDENCE_ROLE"

// locker takes the write lock of the database at path, says so, and keeps it until
// its standard input ends.
func locker(path string) error {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:"+path+"?_busy_timeout=30000") // leasehold may be writing just now
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	fmt.Println("locked")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err // the lock goes with the process
}

// lock has another program take the write lock, until the answer is called.
func (w *world) lock() (release func()) {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+w.database())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(w.T, err)
	out, err := cmd.StdoutPipe()
	must(w.T, err)
	must(w.T, cmd.Start())
	release = sync.OnceFunc(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			w.Errorf("got %v from the other program, want that it ends with its input", err)
		}
	})
	w.Cleanup(release)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		w.Fatalf("got %q, %v from the other program, want that it has the lock", line, err)
	}
	return release
}

func TestForeignLock(t *testing.T) {
	t.Parallel() // it waits, mostly
	t.Run("a database that another program holds at the start is named with the way to find it", func(t *testing.T) {
		t.Parallel()
		w := lived(t, "")
		release := w.lock()
		w.refuses(fault.ExitTemporary, "another program holds a lock on "+w.database(), "fuser "+w.database())
		release()
		w.say(5)
		p := w.start()
		w.arrived(longest)
		p.stop()
		w.judge()
	})
	t.Run("one that another program holds for a while costs that while and nothing else", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "", 3)
		p := w.start()
		w.connected()
		w.say(10)
		w.arrived(longest)
		release := w.lock()
		w.say(10)
		pause(t, 12*time.Second)
		want(t, "stored while it is locked", len(w.kept()), 30)
		want(t, "acknowledged while it is locked", w.acked(), 30)
		p.alive()
		release()
		w.arrived(time.Minute)
		p.stop()
		w.judge()
	})
}
