package sqlite

import (
	"context"
	"errors"
	"time"

	"leasehold/internal/loop"
	"leasehold/store/maintenance"
)

const (
	// vacuumPages are given back in one step: 20 ms of the write lock.
	vacuumPages = `PRAGMA incremental_vacuum(1000)`
	vacuumPause = 50 * time.Millisecond
	// Giving a page back writes two. Below a quarter of the file, or 16 MB, they are
	// better kept for the next events.
	vacuumAbove = 16 << 20
	vacuumShare = 4

	// checkEvery is how often the whole file is read: damage is found while the
	// backups are still from before it.
	checkEvery = 7 * 24 * time.Hour

	// lowDisk is free space at which people are told.
	lowDisk = 64 << 20
)

// Upkeep tends the file: the log folded in as far as readers allow, free pages
// given back where they are many, the whole file read once a week and after an
// unclean stop, the reserve made again. Where nothing was committed since the last
// one, it writes nothing. fault.Corrupt: it found damage, and nothing is written
// any more.
func (s *Store) Upkeep(ctx context.Context) (maintenance.Tended, error) {
	var t maintenance.Tended
	if err := s.CheckFiles(); err != nil {
		return t, failed("tend the store", err)
	}
	var errs []error
	if commits := s.commits.Load(); commits != s.tended.Load() {
		pages, err := s.tidy(ctx)
		t.Vacuumed = pages
		if err == nil {
			s.tended.Store(commits)
		}
		errs = append(errs, err)
	}
	checked, err := s.checkWhole(ctx)
	t.Checked = checked
	errs = append(errs, err)
	s.ensureReserve()
	t.Bytes, t.LogBytes = sizeOf(s.path), sizeOf(s.path+"-wal")
	if t.DiskFree, err = diskFree(s.path); err == nil && t.DiskFree < lowDisk {
		s.log.WarnContext(ctx, "disk nearly full", "path", s.path, "free_bytes", t.DiskFree)
	}
	return t, failed("tend the store", errors.Join(append(errs, err)...))
}

// tidy does what follows from writes. It returns the pages given back.
func (s *Store) tidy(ctx context.Context) (vacuumed int64, err error) {
	if err := s.c.outside(ctx, checkpoint); err != nil {
		return 0, err
	}
	for {
		var freed int64
		err := s.c.outside(ctx, func(w *writer) error {
			many, before, err := manyFree(w)
			if err != nil || !many {
				return err
			}
			if _, err := w.exec(vacuumPages); err != nil {
				return err
			}
			_, after, err := manyFree(w)
			freed = before - after
			return err
		})
		if err != nil || freed <= 0 {
			return vacuumed, err
		}
		vacuumed += freed
		if err := loop.Sleep(ctx, vacuumPause); err != nil {
			return vacuumed, err
		}
	}
}

// manyFree reports whether there are enough free pages to give some back.
func manyFree(w *writer) (many bool, free int64, err error) {
	var all, size int64
	err = errors.Join(
		w.get("PRAGMA freelist_count", nil, &free),
		w.get("PRAGMA page_count", nil, &all),
		w.get("PRAGMA page_size", nil, &size),
	)
	return free*size > vacuumAbove && free > all/vacuumShare, free, err
}

// checkWhole reads the whole file when that is due.
func (s *Store) checkWhole(ctx context.Context) (bool, error) {
	now := s.opt.Now()
	if !s.checkDue.Load() && now.UnixMilli() < s.nextCheck.Load() {
		return false, nil
	}
	if err := quickCheck(ctx, s.path, s.db); err != nil {
		return false, s.judge(err)
	}
	s.checkDue.Store(false)
	s.nextCheck.Store(now.Add(checkEvery).UnixMilli())
	return true, nil
}
