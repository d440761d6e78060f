package sqlite

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/delivery/outbound"
	"leasehold/internal/eventid"
	"leasehold/internal/fault"
	"leasehold/store/maintenance"
)

func TestRotate(t *testing.T) {
	day := 24 * time.Hour
	start := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	type box struct {
		*Store
		now  time.Time
		r    maintenance.Rotation
		term channel.Term
		n    int
	}
	opened := func(t *testing.T) *box {
		t.Helper()
		b := &box{now: start, r: maintenance.Rotation{Dir: t.TempDir(), Every: day, Keep: 3}}
		b.Store = openTest(t, Options{Now: func() time.Time { return b.now }})
		b.term = grant(t, b.Store, "i")
		return b
	}
	change := func(t *testing.T, b *box) {
		t.Helper()
		b.n++
		take(t, b.Store, b.term, fmt.Sprint(b.n))
	}
	rotate := func(t *testing.T, b *box) maintenance.Rotated {
		t.Helper()
		got, err := b.Rotate(t.Context(), b.r)
		must(t, err)
		return got
	}

	t.Run("there is one a day, and the newest are kept", func(t *testing.T) {
		b := opened(t)
		made := rotate(t, b).Copied.Path
		want(t, "name", filepath.Base(made), "leasehold-"+b.id[:8]+"-20261130T090000Z.db")
		var all []string
		for range 5 {
			change(t, b)
			b.now = b.now.Add(day / 2)
			want(t, "after half a day", rotate(t, b).Copied.Path, "")
			b.now = b.now.Add(day / 2)
			got := rotate(t, b)
			all = append(all, filepath.Base(got.Copied.Path))
		}
		want(t, "files", fmt.Sprint(names(t, b.r.Dir)), fmt.Sprint(all[2:]))
		found, err := Backups(b.r.Dir)
		must(t, err)
		want(t, "newest", found[0].At, start.Add(5*day))
	})

	t.Run("where nothing changed there is none, whatever tasks note and however long it rests", func(t *testing.T) {
		b := opened(t)
		change(t, b)
		want(t, "first", rotate(t, b).Copied.Through, 1)
		for range 3 {
			must(t, b.SaveTaskRun(t.Context(), admin.TaskRun{Task: "backup", LastSuccess: b.now, Result: "copied"}))
			b.now = b.now.Add(2 * day)
			want(t, "at rest", rotate(t, b).Copied.Path, "")
		}
		change(t, b)
		want(t, "after a change", rotate(t, b).Copied.Through, 2)
	})

	t.Run("what changed while a backup was made is a reason for the next one", func(t *testing.T) {
		b := opened(t)
		rotate(t, b)
		b.rotated.Store(b.commits.Load()) // as if the last commit had come after the look at their number
		b.now = b.now.Add(day)
		want(t, "made", rotate(t, b).Copied.Path != "", true)
	})

	t.Run("one whose backups are gone makes one", func(t *testing.T) {
		b := opened(t)
		must(t, os.Remove(rotate(t, b).Copied.Path))
		want(t, "made again", rotate(t, b).Copied.Path != "", true)
	})

	t.Run("one that was made while the clock was wrong keeps none from being made", func(t *testing.T) {
		b := opened(t)
		future := filepath.Join(b.r.Dir, "leasehold-"+b.id[:8]+"-20990101T000000Z.db")
		must(t, os.WriteFile(future, nil, 0o600))
		want(t, "made", rotate(t, b).Copied.Path != "", true)
		want(t, "made again at once", rotate(t, b).Copied.Path, "")
	})

	t.Run("other boxes' files and a person's are left alone, and what a kill left behind is not", func(t *testing.T) {
		b := opened(t)
		others := []string{"leasehold-00000000-20200101T000000Z.db", "leasehold.db", "notes.txt", "leasehold-00000000-20200101T000000Z.db.1.part"}
		left, fresh := "leasehold-"+b.id[:8]+"-20200101T000000Z.db.1.part", "leasehold-"+b.id[:8]+"-20200101T000000Z.db.2.part"
		for _, name := range append(slices.Clone(others), left, fresh) {
			must(t, os.WriteFile(filepath.Join(b.r.Dir, name), nil, 0o600))
			if name != fresh {
				must(t, os.Chtimes(filepath.Join(b.r.Dir, name), start.Add(-2*day), start.Add(-2*day)))
			} else {
				must(t, os.Chtimes(filepath.Join(b.r.Dir, name), start.Add(2*day), start.Add(2*day)))
			}
		}
		b.r.Keep = 1
		for range 3 {
			change(t, b)
			rotate(t, b)
			b.now = b.now.Add(day)
		}
		all := names(t, b.r.Dir)
		for _, name := range append(others, fresh) {
			want(t, name+" is there", slices.Contains(all, name), true)
		}
		want(t, "what a kill left is there", slices.Contains(all, left), false)
		want(t, "files", len(all), len(others)+2)
	})

	t.Run("a backup that fails deletes nothing", func(t *testing.T) {
		b := opened(t)
		b.r.Keep = 1
		rotate(t, b)
		change(t, b)
		b.now = b.now.Add(day)
		must(t, os.Mkdir(b.BackupPath(b.r.Dir), 0o700)) // its name is taken
		_, err := b.Rotate(t.Context(), b.r)
		want(t, "kind", fault.Of(err), fault.Conflict)
		found, err := Backups(b.r.Dir)
		must(t, err)
		want(t, "backups", len(found), 1)
	})

	t.Run("a folder that is not there is a disk that is not mounted", func(t *testing.T) {
		b := opened(t)
		b.r.Dir = filepath.Join(b.r.Dir, "usb")
		_, err := b.Rotate(t.Context(), b.r)
		want(t, "kind", fault.Of(err), fault.ReadOnly)
		wantText(t, err, b.r.Dir, "mount it")
	})
}

func TestAdvice(t *testing.T) {
	t.Run("a damaged database names the newest backup with the command that restores it", func(t *testing.T) {
		dir := t.TempDir()
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		large(t, s, term, "e", 5)
		newest, err := s.Backup(t.Context(), s.BackupPath(dir))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "leasehold-00000000-20200101T000000Z.db"), nil, 0o600))
		must(t, s.Close())
		must(t, os.WriteFile(s.path, []byte("SQLite, or what is left of it"), 0o600))
		_, err = Open(t.Context(), s.path, Options{ReserveBytes: -1, Backups: dir})
		want(t, "kind", fault.Of(err), fault.Corrupt)
		wantText(t, err, "leasehold restore --replace "+newest.Path)
		_, err = Open(t.Context(), s.path, Options{ReserveBytes: -1, Backups: t.TempDir()})
		wantText(t, err, "leasehold restore --replace FILE")
	})
	t.Run("another box's backup in the same folder is not named", func(t *testing.T) {
		dir, data := t.TempDir(), t.TempDir()
		path := filepath.Join(data, "leasehold.db")
		s := openAt(t, path, Options{DataDir: data})
		own, err := s.Backup(t.Context(), s.BackupPath(dir))
		must(t, err)
		other := filepath.Join(dir, "leasehold-00000000-20990101T000000Z.db")
		must(t, os.WriteFile(other, nil, 0o600))
		must(t, s.Close())
		must(t, os.WriteFile(path, []byte("what is left of it"), 0o600))
		_, err = Open(t.Context(), path, Options{ReserveBytes: -1, DataDir: data, Backups: dir})
		wantText(t, err, own.Path)
		all, err := OwnBackups(dir, t.TempDir()) // which remembers no store
		must(t, err)
		want(t, "backups for a folder without a store", len(all), 2)
	})
	t.Run("so does one that is found to be damaged while it works", func(t *testing.T) {
		dir := t.TempDir()
		var told strings.Builder
		s := openTest(t, Options{Backups: dir, Log: slog.New(slog.NewTextHandler(&told, nil))})
		newest, err := s.Backup(t.Context(), s.BackupPath(dir))
		must(t, err)
		err = s.judge(corruptError(s.path, errors.New("a page is wrong")))
		wantText(t, err, newest.Path)
		wantText(t, s.broken(), newest.Path)
		want(t, "told", strings.Contains(told.String(), newest.Path), true)
	})
}

func TestAdopt(t *testing.T) {
	t.Run("a copy that is opened becomes a store of its own, and warns once", func(t *testing.T) {
		s := openTest(t, Options{Name: "gw"})
		term := grant(t, s, "i")
		take(t, s, term, "1", "2")
		must(t, s.c.do(t.Context(), func(w *writer) error {
			_, err := w.exec(`INSERT INTO message(id, installation_id, lease_id, idempotency_key, op, conversation, thread, message_id, created_at, expires_at, body)
VALUES ('out_1', 'i', 'i', '', 'send', '', '', '', 1, 9000000000000, x'7b7d')`)
			return err
		}))
		path := filepath.Join(t.TempDir(), "copy.db")
		_, err := s.Backup(t.Context(), path)
		must(t, err)
		take(t, s, term, "3") // the other box goes on, and sends what waited

		var told strings.Builder
		log := slog.New(slog.NewTextHandler(&told, nil))
		c := openAt(t, path, Options{Log: log})
		for _, words := range []string{"must be stopped", "node=gw", "level=WARN"} {
			want(t, "told of "+words, strings.Contains(told.String(), words), true)
		}
		want(t, "an id of its own", c.id != s.id, true)
		var state outbound.State
		must(t, c.db.Get(&state, "SELECT state FROM message"))
		want(t, "the message that waited", state, outbound.Sending) // as one whose holder died meanwhile
		take(t, c, again(t, c, "session", "i"), "4")
		var seq int64
		must(t, c.db.Get(&seq, "SELECT max(seq) FROM event"))
		want(t, "seq beyond the other's", seq, int64(2+seqGap+1))
		_, ok := eventid.WebhookSeq(eventid.NewWebhook(seq))
		want(t, "there is an id for it", ok, true)
		must(t, c.EndSession(t.Context(), "session"))
		must(t, c.Close())

		told.Reset()
		c = openAt(t, path, Options{Log: log})
		want(t, "told again", told.String(), "")
		want(t, "events", count(t, c, "event"), 3)
	})
	t.Run("a copy of a store without an event begins beyond the other's, too", func(t *testing.T) {
		s := openTest(t, Options{})
		path := filepath.Join(t.TempDir(), "copy.db")
		_, err := s.Backup(t.Context(), path)
		must(t, err)
		c := openAt(t, path, Options{})
		take(t, c, grant(t, c, "i"), "1")
		var seq int64
		must(t, c.db.Get(&seq, "SELECT max(seq) FROM event"))
		want(t, "seq", seq, int64(seqGap+1))
	})
}
