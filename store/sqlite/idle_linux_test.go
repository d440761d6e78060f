package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"leasehold/store/maintenance"
)

// writtenBytes is what this process has had written to disks.
func writtenBytes(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	must(t, err)
	for line := range strings.Lines(string(b)) {
		if n, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			v, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			must(t, err)
			return v
		}
	}
	t.Fatal("got no write_bytes, want them")
	return 0
}

// It runs apart from go test, which writes down every file that a test looks at.
func TestIdle(t *testing.T) {
	apart(t, nil, testIdle)
}

func testIdle(t *testing.T) {
	t.Run("at rest nothing is written, whatever runs", func(t *testing.T) {
		now := time.Now()
		s := openTest(t, Options{ReserveBytes: 1 << 20, DataDir: t.TempDir(), Now: func() time.Time { return now }})
		term := grant(t, s, "i")
		take(t, s, term, "1", "2")
		keep := maintenance.Retention{Events: 7 * 24 * time.Hour, Dead: 30 * 24 * time.Hour}
		tick := func() {
			snap, err := s.List(t.Context(), 0)
			must(t, err)
			_, err = s.List(t.Context(), snap.Version)
			must(t, err)
			_, err = s.RenewSession(t.Context(), "session", time.Second)
			must(t, err)
			_, err = s.Claim(t.Context(), "session", []string{"i"})
			must(t, err)
			_, err = s.Pending(t.Context(), "i", 0, "", 100)
			must(t, err)
			_, err = s.Installations(t.Context())
			must(t, err)
			_, err = s.Totals(t.Context())
			must(t, err)
			_, err = s.Sweep(t.Context(), keep)
			must(t, err)
			_, err = s.Upkeep(t.Context())
			must(t, err)
			_, err = s.Audit(t.Context(), 0)
			must(t, err)
			_, _, _, err = s.Reconcile(t.Context(), nil)
			must(t, err)
			now = now.Add(5 * time.Second)
		}
		tick() // the first upkeep folds the log in
		tick()
		files := func() (all []byte) {
			for _, path := range []string{s.path, s.path + "-wal", s.path + ".owner", s.opt.DataDir + "/instance.json"} {
				b, err := os.ReadFile(path)
				must(t, err)
				info, err := os.Stat(path)
				must(t, err)
				all = append(fmt.Appendf(all, "%s %d %v\n", path, len(b), info.ModTime().UnixNano()), b...)
			}
			return all
		}
		before, written, commits := files(), writtenBytes(t), s.commits.Load()
		for range 100 {
			tick()
		}
		if after := files(); !bytes.Equal(after, before) {
			t.Error("got files that changed at rest, want the same bytes and times")
		}
		want(t, "bytes written by the process", writtenBytes(t)-written, 0)
		want(t, "commits", s.commits.Load()-commits, 0)
	})
}
