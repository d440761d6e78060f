package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Place is where a database is, or would be, and what is beside it.
type Place struct {
	Path string
	// FileSystem is its kind; "" = none that a database needs to fear, or not known on
	// this system.
	FileSystem string
	Network    bool  // locks and shared memory may lie there
	Volatile   bool  // it is gone at the next boot, or with its container
	Free       int64 // bytes
	Nodes      int64 // files that may still be made; -1 = no limit, or not known

	There    bool // the database is
	Bytes    int64
	LogBytes int64
	// ReserveLacks is what the reserve is to have back before a full disk may come; a
	// volume that is too small for one lacks nothing.
	ReserveLacks int64
	// NoReserve: the database is there, and no file beside it gives room back once the
	// disk is full. It was given up, or the volume never had room for it.
	NoReserve bool
	// Parts are what killed restores left; the next start removes them.
	Parts []string
}

// Low reports whether people are to be told of the room that is left: events may
// still be accepted.
func (p Place) Low() bool { return p.Free < lowDisk }

// Short reports whether there is too little room to accept events for long.
func (p Place) Short() bool { return p.Free < headroom || p.Nodes >= 0 && p.Nodes < fewNodes }

// fewNodes is about what the database, its log, its index, the reserve, the lock's
// owner and a copy are made of, and some.
const fewNodes = 16

// Look looks at the place of the database at path without opening it. The folder
// must be there.
func Look(path string) (Place, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Place{}, failed("look at "+path, err)
	}
	p := Place{Path: abs, Nodes: -1}
	if p.Free, err = diskFree(abs); err != nil {
		return p, failed("look at "+filepath.Dir(abs), err)
	}
	if err := lookAtFileSystem(&p); err != nil {
		return p, failed("look at "+filepath.Dir(abs), err)
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return p, failed("look at the database", err)
	default:
		p.There, p.Bytes, p.LogBytes = true, info.Size(), sizeOf(abs+"-wal")
		s := &Store{opt: Options{ReserveBytes: defaultReserve}, reads: &reads{path: abs}}
		p.ReserveLacks, p.NoReserve = s.reserveOwed(), sizeOf(s.reservePath()) == 0
	}
	entries, err := os.ReadDir(filepath.Dir(abs))
	if err != nil {
		return p, failed("look at "+filepath.Dir(abs), err)
	}
	for _, e := range entries {
		if isPart(e.Name(), filepath.Base(abs)) {
			p.Parts = append(p.Parts, filepath.Join(filepath.Dir(abs), e.Name()))
		}
	}
	return p, nil
}

// Check reads the whole database: fault.Corrupt with the first damage that it finds.
func (r *Reader) Check(ctx context.Context) error {
	return failed("read the whole database", quickCheck(ctx, r.path, r.db))
}
