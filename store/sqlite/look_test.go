package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"leasehold/internal/fault"
)

func TestLook(t *testing.T) {
	t.Run("it tells what is there, and makes nothing", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "leasehold.db")
		p, err := Look(path)
		must(t, err)
		want(t, "there", p.There, false)
		want(t, "without a reserve before there is a database", p.NoReserve, false)
		want(t, "files", len(names(t, dir)), 0)
		s := openAt(t, path, Options{ReserveBytes: -1})
		take(t, s, grant(t, s, "i"), "1")
		must(t, os.WriteFile(path+".123.part", nil, 0o600))
		p, err = Look(path)
		must(t, err)
		want(t, "there with a store", p.There, true)
		want(t, "bytes", p.Bytes, sizeOf(path))
		want(t, "log", p.LogBytes, sizeOf(path+"-wal"))
		want(t, "parts", len(p.Parts), 1)
		want(t, "free", p.Free > 0, true)
		want(t, "without a reserve", p.NoReserve, true)
		must(t, os.WriteFile(s.reservePath(), []byte("room"), 0o600))
		p, err = Look(path)
		must(t, err)
		want(t, "without a reserve beside one", p.NoReserve, false)
	})
	t.Run("a folder that is not there is an error", func(t *testing.T) {
		_, err := Look(filepath.Join(t.TempDir(), "none", "leasehold.db"))
		want(t, "error", err != nil, true)
	})
	t.Run("room is told in two steps", func(t *testing.T) {
		for free, words := range map[int64]string{1 << 20: "low short", 8 << 20: "low ", 1 << 30: ""} {
			p, got := Place{Free: free, Nodes: -1}, ""
			if p.Low() {
				got = "low "
			}
			if p.Short() {
				got += "short"
			}
			want(t, "words", got, words)
		}
		want(t, "without a file to make", Place{Free: 1 << 40, Nodes: 3}.Short(), true)
	})
}

func TestReaderCheck(t *testing.T) {
	t.Run("damage that nobody has touched is found beside the process at work", func(t *testing.T) {
		s := openTest(t, Options{})
		large(t, s, grant(t, s, "i"), "e", 40)
		must(t, s.c.outside(t.Context(), checkpoint))
		r, err := OpenReader(t.Context(), s.path, Options{})
		must(t, err)
		must(t, r.Check(t.Context()))
		must(t, r.Close())
		garble(t, s.path, 20)
		r, err = OpenReader(t.Context(), s.path, Options{})
		must(t, err)
		err = r.Check(t.Context())
		want(t, "kind", fault.Of(err), fault.Corrupt)
		wantText(t, err, s.path, "leasehold restore")
		must(t, r.Close())
	})
}
