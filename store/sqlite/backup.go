package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"leasehold/internal/durable"
	"leasehold/internal/fault"
	"leasehold/store/maintenance"
)

// partSuffix ends the name of a copy that is being written, apart from what SQLite
// may have beside it. Whatever has it and is not being written is what
// a killed process left.
const partSuffix = ".part"

// removePart removes a copy that will not be finished.
func removePart(part string) error {
	errs := []error{os.Remove(part)}
	for _, suffix := range besideSuffixes {
		if err := os.Remove(part + suffix); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// besideSuffixes end the names of what SQLite has beside a database.
var besideSuffixes = []string{"-wal", "-shm", "-journal"}

// Backup writes a copy of the database to path, for its owner's eyes only. What
// was committed before the call is in it. It is made beside path under another
// name, checked page by page, synced, and only then given its name: a backup that
// fails, is cancelled or is killed leaves nothing there that could be taken for
// one. Commits go on meanwhile; the log beside the database grows until it ends.
//
// The copy is marked as one (see adopt). Errors: fault.Conflict when path exists
// or another backup is under way, fault.Full when there is no room for it,
// fault.ReadOnly when its folder cannot be written, fault.Corrupt when the
// database is damaged.
func (s *Store) Backup(ctx context.Context, path string) (maintenance.Copied, error) {
	return s.BackupWithKey(ctx, path, nil)
}

// BackupWithKey is Backup, with the master key in it, locked by a passphrase; nil =
// without.
func (s *Store) BackupWithKey(ctx context.Context, path string, locked []byte) (maintenance.Copied, error) {
	out, err := s.backUp(ctx, path, locked)
	return out, failed("back up the store", err)
}

func (s *Store) backUp(ctx context.Context, path string, locked []byte) (out maintenance.Copied, err error) {
	if err := s.CheckFiles(); err != nil {
		return out, err
	}
	if !s.copying.TryLock() {
		return out, fault.Errorf(fault.Conflict, "another backup is under way; try again when it has ended")
	}
	defer s.copying.Unlock()
	began := s.opt.Now()
	if path, err = filepath.Abs(path); err != nil {
		return out, fmt.Errorf("find %s: %w", path, err)
	}
	if err := unused(path); err != nil {
		return out, err
	}
	if err := s.roomFor(ctx, path); err != nil {
		return out, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+partSuffix) // 0600
	if err != nil {
		return out, fault.Errorf(fault.ReadOnly, "%w: check the owner of the folder, and that it is mounted read-write", err)
	}
	part := f.Name()
	defer func() {
		if err != nil {
			err = errors.Join(err, removePart(part))
		}
	}()
	m := mark{CopiedAt: began.UnixMilli(), Node: s.opt.Name, Host: hostname(), Locked: locked}
	if err := errors.Join(s.copyInto(ctx, part, &m), f.Sync(), f.Close()); err != nil {
		return out, s.copyError(path, err)
	}
	info, err := os.Stat(part)
	if err != nil {
		return out, s.copyError(path, err)
	}
	if err := unused(path); err != nil { // somebody else's, since we looked
		return out, err
	}
	if err := os.Rename(part, path); err != nil {
		return out, s.copyError(path, err)
	}
	removeParts(path) // of those that were killed; the name is taken, so nobody else can finish one
	out = maintenance.Copied{Path: path, Bytes: info.Size(), At: began, Took: s.opt.Now().Sub(began), Through: m.Through, Master: m.Master}
	if err := durable.SyncDir(filepath.Dir(path)); err != nil {
		return out, fault.Errorf(fault.ReadOnly, "sync the folder of %s: %w; the backup may not survive a loss of power", path, err)
	}
	return out, nil
}

// removeParts removes what killed processes left of copies to path, as far as it
// can: it is in nobody's way.
func removeParts(path string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return
	}
	for _, e := range entries {
		if isPart(e.Name(), filepath.Base(path)) {
			_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
}

// isPart reports whether name is that of an unfinished copy to base, or stands
// beside one: base.NUMBER.part. What is named base.db.NUMBER.part is another copy's.
func isPart(name, base string) bool {
	for _, suffix := range besideSuffixes {
		name = strings.TrimSuffix(name, suffix)
	}
	rest, begins := strings.CutPrefix(name, base+".")
	number, ends := strings.CutSuffix(rest, partSuffix)
	return begins && ends && number != "" && strings.Trim(number, "0123456789") == ""
}

// copyInto copies the database into the empty file part, marks it and checks it,
// on connections of its own.
func (s *Store) copyInto(ctx context.Context, part string, m *mark) (err error) {
	db, err := sql.Open("sqlite", dsn(s.path, dsnBackup))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, `VACUUM INTO $1`, part)
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	err = finishCopy(ctx, part, m)
	if damaged(err) { // the copy, not the database
		err = &damagedCopyError{err.Error()}
	}
	return err
}

// finishCopy makes of the database in file, which is nobody's yet, a copy that is
// safe to start from: marked, without the sessions of the box that it came from,
// and read once as a whole.
func finishCopy(ctx context.Context, file string, m *mark) (err error) {
	db, err := sql.Open("sqlite", dsn(file, dsnCopy))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := m.write(ctx, db); err != nil {
		return err
	}
	var words string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&words); err != nil {
		return err
	}
	if words != "ok" {
		return &damagedCopyError{words}
	}
	return nil
}

// damagedCopyError is what a copy's own check found.
type damagedCopyError struct{ words string }

func (e *damagedCopyError) Error() string { return "the copy is damaged: " + e.words }

// unused refuses a name that something has.
func unused(path string) error {
	switch _, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.Errorf(fault.ReadOnly, "look at the place of the copy: %w; name another one", err)
	default:
		return fault.Errorf(fault.Conflict, "%s is there already and is not overwritten: name another file", path)
	}
}

// roomFor refuses a copy that would not fit, before the disk is filled with half of
// it: what accepts events may be on the same one.
func (s *Store) roomFor(ctx context.Context, path string) error {
	var pages, unused, size int64
	for query, into := range map[string]*int64{"PRAGMA page_count": &pages, "PRAGMA freelist_count": &unused, "PRAGMA page_size": &size} {
		if err := s.db.QueryRowContext(ctx, query).Scan(into); err != nil {
			return s.judge(err)
		}
	}
	return roomFor((pages-unused)*size, path)
}

func roomFor(size int64, path string) error {
	dir := filepath.Dir(path)
	free, err := diskFree(path)
	if err != nil {
		return fault.Errorf(fault.ReadOnly, "look at the folder %s: %w; make it first, or name another one", dir, err)
	}
	if free < size+headroom {
		return fault.Errorf(fault.Full, "the copy takes %d MB and %s has %d MB free: free some space, or name another folder", (size+headroom)>>20, dir, free>>20)
	}
	return nil
}

// copyError tells the database's damage, which ends all writing, from trouble with
// the copy at path, which is nothing to the database.
func (s *Store) copyError(path string, err error) error {
	p, _ := code(err)
	var copied *damagedCopyError
	switch {
	case errors.As(err, &copied):
		return fault.Errorf(fault.Temporary, "%w; look at the disk under %s and run: leasehold doctor --full", err, filepath.Dir(path))
	case damaged(err):
		return s.judge(err)
	case p == sqlite3.SQLITE_FULL || errors.Is(err, errNoSpace):
		return fault.Errorf(fault.Full, "no room for the copy in %s: %w; free some space, or name another folder", filepath.Dir(path), err)
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	default:
		return fault.Errorf(fault.ReadOnly, "write the copy %s: %w; check its folder and the disk under it", path, err)
	}
}

// damaged reports whether SQLite said that what it reads is no sound database.
func damaged(err error) bool {
	p, _ := code(err)
	return p == sqlite3.SQLITE_CORRUPT || p == sqlite3.SQLITE_NOTADB
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "" // a name is for people
	}
	return name
}
