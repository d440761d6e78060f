//go:build unix

package evidence_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

func TestBackup(t *testing.T) {
	t.Run("a backup under load has all that was acknowledged before it, and restored beside a foreign log it delivers what waited", func(t *testing.T) {
		w := newWorld(t, "", 10)
		var down atomic.Bool
		w.program.answer = func(string) int {
			if down.Load() {
				return http.StatusServiceUnavailable
			}
			return 0
		}
		p := w.start()
		w.connected()
		w.say(50)
		w.arrived(time.Minute)
		down.Store(true)

		// The load goes on before, during and after the backup.
		const rounds, pace = 60, 10 * time.Millisecond
		copied, backedUp := filepath.Join(w.dir, "copy.db"), make(chan string, 1)
		var before []string
		var began, over time.Time
		var ackedAt [2]int
		for n := range rounds {
			w.say(1)
			pause(t, pace)
			if n == rounds/3 {
				for _, bot := range w.bots {
					before = append(before, w.platform.Acked(bot)...)
				}
				began, ackedAt[0] = time.Now(), w.acked()
				go func() {
					out, code := w.tell("backup", copied)
					backedUp <- fmt.Sprintf("%d %s", code, out)
				}()
			}
			if over.IsZero() && n > rounds/3 && len(backedUp) > 0 {
				over, ackedAt[1] = time.Now(), w.acked()
			}
		}
		said := <-backedUp
		if said[0] != '0' {
			t.Fatalf("backup: got %s, want a success", said)
		}
		if over.IsZero() {
			over, ackedAt[1] = time.Now(), w.acked()
		}
		if ackedAt[1] == ackedAt[0] {
			t.Errorf("got nothing acknowledged in the %v of the backup, want the load to go on", over.Sub(began))
		}
		await(t, time.Minute, func() (string, bool) {
			return fmt.Sprintf("got %d acknowledged, want %d", w.acked(), w.pushed), w.acked() == w.pushed
		})
		t.Logf("%s%d events acknowledged in the %v of it", said[2:], ackedAt[1]-ackedAt[0], over.Sub(began).Round(time.Millisecond))
		sound(t, copied)
		stored := rows(t, copied)
		for _, event := range before {
			if _, ok := stored[event]; !ok {
				t.Errorf("%s was acknowledged before the backup began, and is not in it", event)
			}
		}

		// Another box: an empty folder, but for the log of some other database.
		p.kill()
		old := filepath.Join(w.dir, "data.old")
		must(t, os.Rename(w.data(""), old))
		must(t, os.Mkdir(w.data(""), 0o700))
		for _, suffix := range []string{"-wal", "-shm"} {
			b, err := os.ReadFile(filepath.Join(old, "leasehold.db"+suffix))
			must(t, err)
			must(t, os.WriteFile(w.database()+suffix, b, 0o600))
		}
		if out, code := w.tell("restore", copied); code != 2 {
			t.Errorf("restore without --yes: got %d %s, want 2", code, out)
		}
		if out, code := w.tell("restore", "--yes", copied); code != 0 {
			t.Fatalf("restore: got %d %s, want a success", code, out)
		}
		sound(t, w.database())
		waiting := 0
		for event := range stored {
			if w.program.id(event) == "" {
				waiting++
			}
		}
		if waiting == 0 {
			t.Error("got nothing that waits in the backup, want some")
		}
		down.Store(false)
		p = w.start()
		p.saying("the box it came from must be stopped")
		w.connected()
		w.say(5)
		await(t, time.Minute, func() (string, bool) {
			missing := 0
			for event, r := range stored {
				if w.program.id(event) != r.webhook {
					missing++
				}
			}
			news := 0
			for event := range rows(t, w.database()) {
				if _, known := stored[event]; !known && w.program.id(event) != "" {
					news++
				}
			}
			return fmt.Sprintf("got %d of the backup's %d not delivered, and %d new ones delivered; want 0 and %d", missing, len(stored), news, 5*len(w.bots)), missing == 0 && news >= 5*len(w.bots)
		})
		p.stop()
		sound(t, w.database())
		w.single()
		t.Logf("%d events in the backup, %d of them waiting, all delivered by the restored box under their ids; %d said again", len(stored), waiting, w.program.repeats)
	})
}

// sound reads a whole database without our own code.
func sound(t testing.TB, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_busy_timeout=5000")
	must(t, err)
	var words string
	must(t, errors.Join(db.QueryRowContext(t.Context(), "PRAGMA quick_check").Scan(&words), db.Close()))
	want(t, "quick_check of "+filepath.Base(path), words, "ok")
}
