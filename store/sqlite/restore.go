package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"leasehold/internal/durable"
	"leasehold/internal/fault"
)

// RestoreOptions of Restore. The zero value restores where there is nothing.
type RestoreOptions struct {
	// Replace moves a database that is there aside, under a dated name.
	Replace bool
	// PlainCopy takes a database file that was copied by other means than Backup, too.
	// What stood only in its log is missing from it, and nobody can tell how much.
	PlainCopy bool
	// ForceNetworkFS restores onto a network file system, too.
	ForceNetworkFS bool
	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

// Backup is what a backup says of itself.
type Backup struct {
	Path    string    `json:"path"`
	Bytes   int64     `json:"bytes"`
	At      time.Time `json:"at,omitzero"`    // what was stored before is in it; zero for a plain copy
	Node    string    `json:"node,omitempty"` // whose it was; "" = it does not say
	Host    string    `json:"host,omitempty"`
	Through int64     `json:"through_seq"` // its newest event; 0 = none
	Schema  int64     `json:"schema"`
	Master  string    `json:"master_key,omitempty"` // the id of the key that what is sealed in it needs; "" = nothing is
	Locked  []byte    `json:"-"`                    // that key, locked by a passphrase; nil = it is not in it
	Plain   bool      `json:"plain_copy,omitempty"` // it lacks the mark that Backup puts in
}

// Whole refuses a plain copy with fault.Invalid, unless it is accepted as such.
func (b Backup) Whole(plainCopy bool) error {
	if !b.Plain || plainCopy {
		return nil
	}
	return fault.Errorf(fault.Invalid, "%s was not made by leasehold backup: it is a plain copy of a database, and what stood only in its log (-wal) is missing. Make it with leasehold backup, where it came from; if that is gone, --plain-copy takes it as it is", b.Path)
}

// Restored is what Restore did.
type Restored struct {
	Backup
	To    string `json:"to"`
	Aside string `json:"aside,omitempty"` // where the database that was there is now; "" = there was none
}

// Restore puts the backup from in the place of the database to, which nobody may
// have open: it takes its lock. The backup is copied first, and the copy read as a
// whole; then what is in its place is moved aside, together with its log, or with
// the log of a database that is gone. Nothing is deleted but the log's index. When
// it returns nil, all of this is on the disk; after an error, or a kill, the old
// database is in its place or beside it.
//
// Errors: fault.Busy with a *LockedError; fault.Conflict when there is a database
// and o.Replace is not set; fault.NotFound, fault.Corrupt, fault.Newer and
// fault.Invalid speak of the backup; fault.Full and fault.ReadOnly of the place.
func Restore(ctx context.Context, from, to string, o RestoreOptions) (Restored, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	r, err := restore(ctx, from, to, o)
	return r, failed("restore "+from, err)
}

func restore(ctx context.Context, from, to string, o RestoreOptions) (r Restored, err error) {
	if r.Backup, err = ReadBackup(ctx, from); err != nil {
		return r, err
	}
	if err := r.Whole(o.PlainCopy); err != nil {
		return r, err
	}
	if r.To, err = resolve(to, o.ForceNetworkFS); err != nil {
		return r, err
	}
	full, made, err := makePlace(r.To)
	switch {
	case err != nil:
		return r, err
	case full && os.SameFile(stat(r.To), stat(r.Path)):
		return r, fault.Errorf(fault.Invalid, "%s is the database itself; name a backup of it", from)
	case full && !o.Replace:
		return r, fault.Errorf(fault.Conflict, "there is a database already: %s. With --replace it is moved aside, under a dated name, and not deleted", r.To)
	}
	err = r.put(ctx, o.Now(), full, made)
	return r, err
}

// makePlace makes an empty file where there is none, since the lock needs one:
// whoever starts meanwhile finds it locked. full: there is something in it.
func makePlace(path string) (full, made bool, err error) {
	switch info, err := os.Lstat(path); {
	case err == nil:
		return info.Size() > 0, false, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, false, fault.Errorf(fault.ReadOnly, "look at the database: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return false, false, fault.Errorf(fault.ReadOnly, "%w: check the owner of the folder, and that the file system is mounted read-write", err)
	}
	return false, true, f.Close()
}

// put replaces the file at r.To, under its lock.
func (r *Restored) put(ctx context.Context, now time.Time, full, made bool) (err error) {
	lock, err := lockDatabase(r.To, "", now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	removeParts(r.To) // of restores that were killed: we have their lock
	placed := false
	defer func() {
		if made && !placed {
			err = errors.Join(err, os.Remove(r.To))
		}
	}()
	part, err := r.copyBeside(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if !placed {
			err = errors.Join(err, removePart(part))
		}
	}()
	if lock.f.Name() == r.To { // it is on the file that goes: lock the one that comes, too
		next, err := tryLock(part)
		if err != nil {
			return fmt.Errorf("lock the restored database: %w", err)
		}
		defer func() { _ = next.Close() }() // nothing was written through it
	}
	if r.Aside, err = moveAside(r.To, full, now); err != nil {
		return err
	}
	if err := os.Rename(part, r.To); err != nil {
		return fault.Errorf(fault.ReadOnly, "put the backup in its place: %w; what was there is now %s", err, r.Aside)
	}
	placed = true
	return durable.SyncDir(filepath.Dir(r.To))
}

// copyBeside copies the backup to a file beside its place, checks it there, and
// makes it safe to start from. After an error there is no such file.
func (r *Restored) copyBeside(ctx context.Context) (_ string, err error) {
	if err := roomFor(r.Bytes, r.To); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(r.To), filepath.Base(r.To)+".*"+partSuffix) // 0600
	if err != nil {
		return "", fault.Errorf(fault.ReadOnly, "%w: check the owner of the folder, and that the file system is mounted read-write", err)
	}
	part := f.Name()
	defer func() {
		if err != nil {
			err = errors.Join(err, removePart(part))
		}
	}()
	err = copyFile(ctx, f, r.Path)
	if err == nil {
		m := mark{Node: r.Node, Host: r.Host, File: r.Path}
		if !r.Plain {
			m.CopiedAt = r.At.UnixMilli()
		}
		err = finishCopy(ctx, part, &m)
	}
	err = errors.Join(err, f.Sync(), f.Close())
	var found *damagedCopyError
	p, _ := code(err)
	switch {
	case err == nil:
		return part, giveAway(part, filepath.Dir(r.To))
	case damaged(err) || errors.As(err, &found):
		return "", fault.Errorf(fault.Corrupt, "the backup %s is damaged: %w; restore another one", r.Path, err)
	case errors.Is(err, errNoSpace) || p == sqlite3.SQLITE_FULL:
		return "", fault.Errorf(fault.Full, "no room for the database in %s: %w; free some space", filepath.Dir(r.To), err)
	default:
		return "", err
	}
}

func copyFile(ctx context.Context, to io.Writer, path string) (err error) {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	for { // a megabyte at a time: one who gives up is heard
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, 1<<20); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// moveAside moves what is in the place of the database at path, under one dated
// name, so that SQLite finds the log again that belongs to it. A log of the wrong
// database would be replayed into the restored one.
func moveAside(path string, full bool, now time.Time) (aside string, err error) {
	stamp := fmt.Sprintf("%s.replaced-%s", path, now.UTC().Format(backupTime))
	to := stamp
	for n := 2; stat(to) != nil || stat(to+"-wal") != nil; n++ { // twice in a second
		to = fmt.Sprintf("%s-%d", stamp, n)
	}
	if full {
		// First: without it a start says that the database is not there, while a database
		// without its log would be an older one.
		if err := os.Rename(path, to); err != nil {
			return "", fault.Errorf(fault.ReadOnly, "move the database aside: %w", err)
		}
		aside = to
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if err := os.Rename(path+suffix, to+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return aside, fault.Errorf(fault.ReadOnly, "move the log aside: %w", err)
		}
	}
	if err := os.Remove(path + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return aside, fault.Errorf(fault.ReadOnly, "remove the index of the log: %w", err)
	}
	// Before the backup is there: after a loss of power no old log may stand beside it.
	return aside, durable.SyncDir(filepath.Dir(path))
}

// ReadBackup tells what the backup at path is, without reading all of it and
// without a trace beside it. A copy of a database file that was made by other means
// is Plain; one whose log is beside it, or that a process has open, is refused. Errors:
// fault.NotFound; fault.Invalid when it is none of ours or not a copy; fault.Newer;
// fault.Corrupt when its first page is damaged.
func ReadBackup(ctx context.Context, path string) (Backup, error) {
	b, err := readBackup(ctx, path)
	if damaged(err) {
		err = fault.Errorf(fault.Corrupt, "the backup %s is damaged: %w; take another one", path, err)
	}
	return b, err
}

func readBackup(ctx context.Context, path string) (b Backup, err error) {
	if err := setUpDriver(); err != nil {
		return b, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return b, fmt.Errorf("find %s: %w", path, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return b, fault.Errorf(fault.NotFound, "there is no file %s", path)
	case err != nil:
		return b, fault.Errorf(fault.ReadOnly, "look at the backup: %w", err)
	case !info.Mode().IsRegular():
		return b, fault.Errorf(fault.Invalid, "%s is not a file; name a backup", path)
	}
	for _, suffix := range besideSuffixes {
		if stat(path+suffix) != nil {
			return b, fault.Errorf(fault.Invalid, "%s is a database at work, or one that was killed: %s%s is beside it. Make a backup of it: leasehold backup --data-dir %s",
				path, filepath.Base(path), suffix, filepath.Dir(path))
		}
	}
	st, err := readHeader(path)
	switch {
	case fault.Is(err, fault.Corrupt):
		return b, fault.Errorf(fault.Corrupt, "%s is not a backup, or it is damaged: it does not begin as a database does; take another one", path)
	case err != nil:
		return b, err
	case st.empty || st.bare:
		return b, fault.Errorf(fault.Invalid, "%s holds nothing of ours; name a backup", path)
	}
	db, err := sql.Open("sqlite", dsn(path, dsnStill))
	if err != nil {
		return b, err
	}
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	b = Backup{Path: path, Bytes: info.Size(), Plain: true}
	m, err := newMigrator(db, path, migrations())
	if err != nil {
		return b, err
	}
	if b.Schema, err = m.current(ctx); err != nil {
		return b, err
	}
	switch {
	case b.Schema == 0:
		return b, fault.Errorf(fault.Invalid, "%s holds nothing of ours; name a backup", path)
	case b.Schema > m.Top():
		if err := m.newer(ctx, b.Schema); err != nil {
			return b, err
		}
	}
	var found mark
	marked, err := found.read(ctx, db)
	if err != nil {
		return b, err
	}
	if marked && found.CopiedAt != 0 {
		b.Plain = false
		b.At, b.Node, b.Host = time.UnixMilli(found.CopiedAt).UTC(), found.Node, found.Host
	}
	if err := found.readKey(ctx, db); err != nil {
		return b, err
	}
	b.Master, b.Locked = found.Master, found.Locked
	err = db.QueryRowContext(ctx, sqlNewest).Scan(&b.Through)
	return b, err
}

// stat is the file at path; nil: there is none that can be looked at.
func stat(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}
