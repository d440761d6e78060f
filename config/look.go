package config

import (
	"bytes"
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Look is what the files that Load would read were at one moment: enough to tell
// whether Load would read something else now. The environment is not in it; it is
// fixed for a process.
type Look struct {
	at    time.Time
	files []seen
	fault string // why the files could not be found
}

// seen is one file at one moment.
type seen struct {
	path  string
	info  fs.FileInfo // behind symlinks; nil when it could not be read
	hash  [sha256.Size]byte
	blank bool // nothing but white space is in it
	fault string
}

// unsettled is how new a file must be for another change to leave size and time as
// they are: file systems that keep two seconds apart are the coarsest.
const unsettled = 2 * time.Second

// LookAt looks at the files that Load would read from src. What last has seen is
// read again only if it may have changed; last is nil at first.
func LookAt(src Source, last *Look) *Look {
	l := &Look{at: time.Now()}
	h, err := thisHost(src)
	if err != nil {
		l.fault = err.Error()
		return l
	}
	files, fault := h.find(src)
	if fault != nil {
		l.fault = fault.String()
		return l
	}
	for _, file := range files {
		l.files = append(l.files, last.see(h.abs(file)))
	}
	return l
}

// see looks at one file. l is the look before; nil = there was none.
func (l *Look) see(path string) seen {
	p := seen{path: path}
	info, err := os.Stat(path)
	if err != nil {
		p.fault = reason(err)
		return p
	}
	if old := l.find(path); old != nil && old.info != nil && os.SameFile(old.info, info) &&
		old.info.Size() == info.Size() && old.info.ModTime().Equal(info.ModTime()) && l.at.Sub(info.ModTime()) > unsettled {
		return *old
	}
	data, fault := read(path)
	if fault != nil {
		p.fault = fault.Message
		return p
	}
	p.info, p.hash, p.blank = info, sha256.Sum256(data), len(bytes.TrimSpace(data)) == 0
	return p
}

func (l *Look) find(path string) *seen {
	if l == nil {
		return nil
	}
	i := slices.IndexFunc(l.files, func(p seen) bool { return p.path == path })
	if i < 0 {
		return nil
	}
	return &l.files[i]
}

// Same reports whether Load would read the same now as at the look before.
func (l *Look) Same(before *Look) bool {
	return l.fault == before.fault && slices.EqualFunc(l.files, before.files, func(a, b seen) bool {
		return a.path == b.path && a.hash == b.hash && a.fault == b.fault
	})
}

// Lost is what no start may do without, and is gone since the look before: the
// file itself. To go on, Load would take another one, or none at all.
func (l *Look) Lost(before *Look) Faults {
	for _, p := range before.files {
		if inParts(p.path) || l.find(p.path) != nil {
			continue
		}
		if !exists(p.path) {
			return Faults{{File: p.path, Message: "is gone", Hint: "put it back; to run without it, restart leasehold"}}
		}
	}
	return nil
}

// Doubts are what a person may have meant, and what a full disk, an editor or a
// volume that was not mounted leaves, too: a file that has nothing in it any more,
// and a conf.d that has no file any more. To believe it would remove every
// installation that was in there.
func (l *Look) Doubts(before *Look) (faults Faults) {
	const hint = "leasehold reload --allow-empty applies it if that is meant"
	parts := ""
	for _, p := range before.files {
		now := l.find(p.path)
		if now != nil && now.blank && !p.blank {
			faults = append(faults, Fault{File: p.path, Message: "is empty now", Hint: hint})
		}
		if inParts(p.path) {
			parts = filepath.Dir(p.path)
		}
	}
	if parts != "" && !slices.ContainsFunc(l.files, func(p seen) bool { return inParts(p.path) }) {
		faults = append(faults, Fault{File: parts, Message: "has no file any more", Hint: hint})
	}
	return faults
}

// inParts reports whether a file is one of conf.d.
func inParts(path string) bool { return filepath.Base(filepath.Dir(path)) == partsFolder }
