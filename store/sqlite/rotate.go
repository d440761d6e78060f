package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"leasehold/internal/fault"
	"leasehold/internal/identity"
	"leasehold/store/maintenance"
)

// BackupFile is a backup that its name tells: leasehold-STORE-TIME.db.
type BackupFile struct {
	Path  string
	Store string    // the first letters of the store's id: one box's backups are not another's
	At    time.Time // when it was begun
}

const (
	backupTime  = "20060102T150405Z"
	storeLetter = 8 // of the id: enough for the boxes that share a folder
)

var backupName = regexp.MustCompile(`^leasehold-([0-9a-f]{8})-([0-9]{8}T[0-9]{6}Z)\.db$`)

// Backups lists the dated backups in dir, newest first. A folder that is not there
// holds none.
func Backups(dir string) ([]BackupFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the backups: %w", err)
	}
	var all []BackupFile
	for _, e := range entries {
		found := backupName.FindStringSubmatch(e.Name())
		if found == nil || !e.Type().IsRegular() {
			continue
		}
		at, err := time.Parse(backupTime, found[2])
		if err != nil {
			continue // a date that is none: not a name of ours
		}
		all = append(all, BackupFile{Path: filepath.Join(dir, e.Name()), Store: found[1], At: at})
	}
	slices.SortFunc(all, func(a, b BackupFile) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Path, b.Path)) })
	return all, nil
}

// OwnBackups are those in dir of the store that belongs to dataDir, newest first: a
// folder may hold other boxes', too. Where dataDir remembers no store, all are.
func OwnBackups(dir, dataDir string) ([]BackupFile, error) {
	all, err := Backups(dir)
	if err != nil || dataDir == "" {
		return all, err
	}
	id, err := identity.Load(dataDir)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what and where
	}
	return slices.DeleteFunc(all, func(b BackupFile) bool { return id.Store != "" && !strings.HasPrefix(id.Store, b.Store) }), nil
}

// BackupPath is where a backup of this store that is begun now stands in dir.
func (s *Store) BackupPath(dir string) string {
	return filepath.Join(dir, fmt.Sprintf("leasehold-%.*s-%s.db", storeLetter, s.id, s.opt.Now().UTC().Format(backupTime)))
}

// Rotate makes a backup in r.Dir when the newest one there is old enough and
// something was committed since; notes of tasks do not count. Then it deletes this
// store's backups beyond the newest r.Keep, and what a killed process left of one.
// Other stores' are left alone. The folder must be there: one that is missing is a
// disk that is not mounted, most often. Errors are Backup's; without a new backup
// nothing is deleted.
func (s *Store) Rotate(ctx context.Context, r maintenance.Rotation) (maintenance.Rotated, error) {
	var out maintenance.Rotated
	all, err := s.ownBackups(r.Dir)
	if err != nil {
		return out, err
	}
	if info, err := os.Stat(r.Dir); err != nil || !info.IsDir() {
		return out, fault.Errorf(fault.ReadOnly, "the folder of the backups is not there: mount it or make it: %s; or set tasks.backup.dir", r.Dir)
	}
	commits := s.commits.Load() + 1 // read before the copy is begun: more may be in it, never less
	if !s.due(all, r.Every, commits) {
		return out, nil
	}
	if out.Copied, err = s.Backup(ctx, s.BackupPath(r.Dir)); err != nil {
		return out, err
	}
	s.rotated.Store(commits)
	out.Dropped, err = s.dropOld(r)
	return out, err
}

// due reports whether the newest of the backups is too old. One that is dated after
// now was made while the clock was wrong, and says nothing.
func (s *Store) due(all []BackupFile, every time.Duration, commits int64) bool {
	now := s.opt.Now()
	past := slices.DeleteFunc(slices.Clone(all), func(b BackupFile) bool { return b.At.After(now) })
	if len(past) == 0 {
		return true
	}
	return now.Sub(past[0].At) >= every && s.rotated.Load() != commits
}

// ownBackups are this store's, newest first.
func (s *Store) ownBackups(dir string) ([]BackupFile, error) {
	all, err := Backups(dir)
	return slices.DeleteFunc(all, func(b BackupFile) bool { return b.Store != s.id[:storeLetter] }), err
}

// partAge is how long nobody has written a backup before it counts as left behind.
const partAge = 24 * time.Hour

// dropOld deletes what a rotation no longer keeps.
func (s *Store) dropOld(r maintenance.Rotation) (dropped int, err error) {
	all, err := s.ownBackups(r.Dir)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, b := range all[min(max(1, r.Keep), len(all)):] {
		if err := os.Remove(b.Path); err != nil {
			errs = append(errs, fmt.Errorf("delete an old backup: %w", err))
			continue
		}
		dropped++
	}
	entries, err := os.ReadDir(r.Dir)
	errs = append(errs, err)
	for _, e := range entries {
		ours := strings.HasPrefix(e.Name(), "leasehold-"+s.id[:storeLetter]+"-") && strings.Contains(e.Name(), ".db.") && strings.Contains(e.Name(), partSuffix)
		if info, err := e.Info(); ours && err == nil && s.opt.Now().Sub(info.ModTime()) > partAge {
			errs = append(errs, os.Remove(filepath.Join(r.Dir, e.Name())))
		}
	}
	return dropped, errors.Join(errs...)
}

// advise ends an error about damage with the backup to restore.
func (s *Store) advise(err error) error {
	if !fault.Is(err, fault.Corrupt) {
		return err
	}
	all, _ := OwnBackups(s.opt.Backups, s.opt.DataDir) // what cannot be listed cannot be named
	if s.opt.Backups == "" || len(all) == 0 {
		return err
	}
	newest := all[0]
	return fault.Errorf(fault.Corrupt, "%w; the newest is of %s: leasehold restore --replace %s", err, newest.At.Format(time.RFC3339), newest.Path)
}
