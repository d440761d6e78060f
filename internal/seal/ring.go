package seal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"leasehold/internal/durable"
	"leasehold/internal/fault"
)

// Ring is the master keys that are at hand. While one takes the other's place there
// are two.
type Ring []Key

// ParseRing reads keys, one a line. Its error names the line and repeats nothing of it.
func ParseRing(text string) (Ring, error) {
	var r Ring
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		k, err := ParseKey(line)
		if err != nil {
			return nil, fmt.Errorf("line %d %w", n+1, err)
		}
		r = append(r, k)
	}
	return r, nil
}

// Text is the ring as ParseRing reads it.
func (r Ring) Text() string {
	var b strings.Builder
	for _, k := range r {
		b.WriteString(k.Text() + "\n")
	}
	return b.String()
}

// Find returns the key of an id; false: it is not at hand.
func (r Ring) Find(id string) (Key, bool) {
	i := slices.IndexFunc(r, func(k Key) bool { return k.ID() == id })
	if i < 0 {
		return Key{}, false
	}
	return r[i], true
}

// IDs are the ids of the keys, in their order.
func (r Ring) IDs() []string {
	ids := make([]string, len(r))
	for i, k := range r {
		ids[i] = k.ID()
	}
	return ids
}

// File is a file of master keys that this program keeps for itself, for its owner's
// eyes only. It has one writer at a time: whoever holds the store's lock.
type File string

// Read returns the keys in the file; none where there is no file. fault.Invalid: others
// can read it, or it holds something else.
func (f File) Read() (Ring, error) {
	info, err := os.Stat(string(f))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fault.Errorf(fault.Invalid, "look at the master key: %w", err)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fault.Errorf(fault.Invalid, "the master key %s can be read by others (mode %04o); run chmod 600 %s", f, info.Mode().Perm(), f)
	}
	text, err := os.ReadFile(string(f))
	if err != nil {
		return nil, fault.Errorf(fault.Invalid, "read the master key: %w; check its owner", err)
	}
	r, err := ParseRing(string(text))
	if err != nil {
		return nil, fault.Errorf(fault.Invalid, "the master key %s: %w; put the file back as it was", f, err)
	}
	return r, nil
}

// Write replaces what is in the file. After a crash it holds the old keys or the new
// ones, and when it returns nil the new ones are on the disk.
func (f File) Write(r Ring) error {
	f.Tidy()
	if err := durable.Replace(string(f), []byte(r.Text()), 0o600); err != nil {
		return fault.Errorf(fault.ReadOnly, "keep the master key: %w; check the folder of %s", err, f)
	}
	return nil
}

// Tidy removes what killed calls of Write left beside the file: keys, in files of
// their own that nothing reads.
func (f File) Tidy() { durable.Tidy(string(f)) }
