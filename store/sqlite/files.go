package sqlite

import (
	"os"
)

// files are those of the database as they were when it was opened.
type files struct{ db, wal os.FileInfo }

func lookAtFiles(path string) (*files, error) {
	db, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	wal, err := os.Stat(path + "-wal")
	if err != nil {
		return nil, err
	}
	return &files{db: db, wal: wal}, nil
}

// sameFiles reports fault.Gone when a path does not lead to the file that is
// open: writes into one that was unlinked go on succeeding, into nowhere. It
// asks for the names only: opening and closing one would be unsafe elsewhere
// than on Linux.
func (s *Store) sameFiles() error {
	f := s.files.Load()
	if f == nil {
		return nil
	}
	if !stillThere(s.path, f.db) {
		return goneError(s.path)
	}
	if wal := s.path + "-wal"; !stillThere(wal, f.wal) {
		return goneError(wal)
	}
	if s.lock != nil && s.lock.f.Name() != s.path {
		return s.lock.check()
	}
	return nil
}

func stillThere(path string, was os.FileInfo) bool {
	is, err := os.Stat(path)
	return err == nil && os.SameFile(is, was)
}

// CheckFiles reports fault.Gone, for ever after, when the database or its log
// was removed or replaced while open, and any other reason why nothing is
// written any more. It costs two system calls and no disk. List calls it, so a
// supervisor's tick does.
func (s *Store) CheckFiles() error {
	if err := s.broken(); err != nil {
		return err
	}
	return s.judge(s.sameFiles())
}

// Full reports whether the disk was full and no Probe has succeeded since.
func (s *Store) Full() bool { return s.full.Load() }

// sizeOf is the size of the file at path in bytes; 0 = there is none.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
