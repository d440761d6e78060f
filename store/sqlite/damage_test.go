package sqlite

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"leasehold/internal/fault"
)

func TestDamage(t *testing.T) {
	// damaged makes a database with events, ends it as a crash does, and changes its
	// bytes.
	damaged := func(t *testing.T, change func(b []byte) []byte) string {
		t.Helper()
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		for n := range 40 {
			r := batch(term, fmt.Sprint(n))
			r.Events[0].Body = bytes.Repeat([]byte("x"), 2000)
			_, err := s.Accept(t.Context(), r)
			must(t, err)
		}
		must(t, s.Close())
		b, err := os.ReadFile(s.path)
		must(t, err)
		must(t, os.WriteFile(s.path, change(b), 0o600))
		return s.path
	}
	for name, change := range map[string]func(b []byte) []byte{
		"garbage":      func(b []byte) []byte { return bytes.Repeat([]byte("garbage "), len(b)/8) },
		"a short file": func([]byte) []byte { return []byte("SQLite") },
		"a garbled header": func(b []byte) []byte {
			return append(append([]byte{}, b[:16]...), bytes.Repeat([]byte{0xA5}, len(b)-16)...)
		},
		"a garbled page":       func(b []byte) []byte { copy(b[len(b)-3*4096:], bytes.Repeat([]byte{0xA5}, 4096)); return b },
		"a truncated file":     func(b []byte) []byte { return b[:len(b)/2] },
		"a file cut in a page": func(b []byte) []byte { return b[:len(b)-4096-100] },
	} {
		t.Run("is named with what to do, and nothing is overwritten: "+name, func(t *testing.T) {
			path := damaged(t, change)
			before, err := os.ReadFile(path)
			must(t, err)
			_, err = Open(t.Context(), path, Options{ReserveBytes: -1})
			if k := fault.Of(err); k != fault.Corrupt && k != fault.Invalid {
				t.Errorf("got %v (%v), want a damaged database, or one that is not ours", err, k)
			}
			wantText(t, err, path)
			if fault.Is(err, fault.Corrupt) {
				wantText(t, err, "damaged", "restore a backup")
			}
			after, err := os.ReadFile(path)
			must(t, err)
			want(t, "bytes unchanged", bytes.Equal(before, after), true)
		})
	}

	t.Run("its log stays beside it, unfolded, when the process before was killed", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		for n := range 40 {
			take(t, s, term, fmt.Sprint(n))
		}
		must(t, s.c.outside(t.Context(), checkpoint))
		take(t, s, term, "in the log alone")
		dead := filepath.Join(t.TempDir(), "leasehold.db") // as a kill would leave it
		for _, suffix := range []string{"", "-wal"} {
			b, err := os.ReadFile(s.path + suffix)
			must(t, err)
			if suffix == "" {
				copy(b[4096:], bytes.Repeat([]byte{0xA5}, len(b)))
			}
			must(t, os.WriteFile(dead+suffix, b, 0o600))
		}
		before := contents(t, dead)
		_, err := Open(t.Context(), dead, Options{ReserveBytes: -1})
		want(t, "kind", fault.Of(err), fault.Corrupt)
		want(t, "database and log unchanged", contents(t, dead), before)
	})

	t.Run("found while it works, it is closed without folding the log into it", func(t *testing.T) {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "leasehold.db"), Options{ReserveBytes: -1})
		must(t, err)
		take(t, s, grant(t, s, "i"), "1")
		_ = s.judge(corruptError(s.path, errors.New("a page is wrong"))) // as a statement would find it
		before := contents(t, s.path)
		must(t, s.Close())
		want(t, "database and log unchanged", contents(t, s.path), before)
	})

	t.Run("found while it works, it ends all writing for ever", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		take(t, s, term, "1")
		_ = s.judge(corruptError(s.path, errors.New("a page is wrong"))) // as a statement would find it
		for what, err := range map[string]error{
			"accept": func() error { _, err := s.Accept(t.Context(), batch(term, "2")); return err }(),
			"probe":  s.Probe(t.Context()),
			"list":   func() error { _, err := s.List(t.Context(), 0); return err }(),
			"upkeep": func() error { _, err := s.Upkeep(t.Context()); return err }(),
			"admin":  s.SetEnabled(t.Context(), "i", false),
			"claim":  func() error { _, err := s.Claim(t.Context(), "session", []string{"i"}); return err }(),
		} {
			want(t, what, fault.Of(err), fault.Corrupt)
			want(t, what+" means the store", fault.Store(err), true)
		}
		want(t, "events", count(t, s, "event"), 1)
	})

	t.Run("the weekly reading finds it", func(t *testing.T) {
		now := time.Now()
		s := openTest(t, Options{Now: func() time.Time { return now }})
		got, err := s.Upkeep(t.Context())
		must(t, err)
		want(t, "checked at once", got.Checked, false)
		now = now.Add(checkEvery)
		got, err = s.Upkeep(t.Context())
		must(t, err)
		want(t, "checked after a week", got.Checked, true)
		got, err = s.Upkeep(t.Context())
		must(t, err)
		want(t, "checked again", got.Checked, false)
	})

	t.Run("an unclean stop is told by the session that was left", func(t *testing.T) {
		s := openTest(t, Options{})
		grant(t, s, "i")
		left, err := sessionLeft(t.Context(), s.db.DB)
		must(t, err)
		want(t, "left", left, true)
		must(t, s.EndSession(t.Context(), "session"))
		left, err = sessionLeft(t.Context(), s.db.DB)
		must(t, err)
		want(t, "left after its end", left, false)
	})
}

// contents are the bytes of a database and of its log.
func contents(t testing.TB, path string) (all string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		must(t, err)
		all += fmt.Sprintf("%d bytes of %s %x\n", len(b), suffix, sha256.Sum256(b))
	}
	return all
}
