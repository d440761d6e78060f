package sqlite

import (
	"errors"
	"io/fs"
	"os"
)

// The reserve is a file beside the database that takes up room until the disk is
// full: then even a DELETE and a checkpoint fail, and giving it up lets them run.

// defaultReserve is four logs: folding one in may take as much as it has.
const defaultReserve = 16 << 20

// reserveFactor is how many reserves must be free before it is made again: 64 MB
// for the default 16.
const reserveFactor = 4

func (s *Store) reservePath() string { return s.path + ".reserve" }

func (s *Store) reserveMissing() int64 {
	if s.opt.ReserveBytes <= 0 {
		return 0
	}
	info, err := os.Stat(s.reservePath())
	if err != nil {
		return s.opt.ReserveBytes
	}
	return max(0, s.opt.ReserveBytes-info.Size())
}

// reserveOwed is what the reserve is to have back: nothing on a volume that is
// too small to have ever had one.
func (s *Store) reserveOwed() int64 {
	if size, err := diskSize(s.path); err == nil && size < reserveFactor*s.opt.ReserveBytes {
		return 0
	}
	return s.reserveMissing()
}

func (s *Store) giveUpReserve() {
	switch err := os.Remove(s.reservePath()); {
	case err == nil:
		s.log.Warn("reserve given up", "path", s.reservePath())
	case !errors.Is(err, fs.ErrNotExist):
		s.log.Error("reserve not given up", "path", s.reservePath(), "error", err)
	}
}

// ensureReserve makes the reserve when there is plenty of room and none, or a
// part of one. What keeps it from being made is no reason to stop.
func (s *Store) ensureReserve() {
	if s.lock == nil || s.reserveMissing() == 0 {
		return
	}
	if free, err := diskFree(s.path); err != nil || free < reserveFactor*s.opt.ReserveBytes {
		return
	}
	f, err := os.OpenFile(s.reservePath(), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = errors.Join(allocate(f, s.opt.ReserveBytes), f.Close())
	}
	if err != nil {
		s.log.Warn("reserve not made", "path", s.reservePath(), "error", errors.Join(err, os.Remove(s.reservePath())))
	}
}

// fill writes real blocks where a file system cannot allocate them.
func fill(f *os.File, size int64) error {
	block := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(block)) {
		if _, err := f.WriteAt(block[:min(int64(len(block)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}
