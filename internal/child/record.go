package child

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// identity is a process: its number and when it began, since numbers are used
// again. The unit of start is the system's own.
type identity struct {
	PID   int    `json:"pid,omitempty"`
	Start uint64 `json:"start,omitempty"`
}

// record is what a folder remembers of a program that runs, one file for each. It
// is written before the program starts and struck off once nothing is left of it.
// It needs to outlive this process only, not the machine: it is not synced.
type record struct {
	Owner  string   `json:"owner"`
	Marker string   `json:"marker"`
	Boot   string   `json:"boot"`
	Leader identity `json:"leader,omitzero"` // unknown while it is being started
	Keeper identity `json:"keeper"`          // the process that runs it
}

// Left is what an earlier process had left behind of one owner.
type Left struct {
	Owner  string
	Killed int // processes
	Alive  int // those that did not die; normally none
}

// Keep makes the Keeper keep its records in dir, which it makes when it needs it.
// It is called before Run.
func (k *Keeper) Keep(dir string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dir = dir
}

// Clear kills what earlier processes with the same folder left behind. It is called
// before anything is started, by the one process that may use the folder.
func (k *Keeper) Clear() ([]Left, error) {
	records, err := k.records()
	if err != nil {
		return nil, err
	}
	var all []Left
	for _, r := range records {
		l := Left{Owner: r.Owner}
		l.Killed, l.Alive = k.end(r)
		if l.Killed+l.Alive > 0 {
			all = append(all, l)
		}
	}
	return all, nil
}

// clear is Clear for one owner.
func (k *Keeper) clear(owner string) error {
	records, err := k.records()
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Owner != owner {
			continue
		}
		if _, alive := k.end(r); alive > 0 {
			return fmt.Errorf("%w: %d of them, the first program of which was process %d; they wait for a disk or a network file system", ErrLeft, alive, r.Leader.PID)
		}
	}
	return nil
}

// end kills what a record is about and strikes it off.
func (k *Keeper) end(r record) (killed, alive int) {
	if k.runs(r.Marker) || r.Keeper != self() && lives(r.Keeper) {
		return 0, 0
	}
	if r.Boot == boot() {
		killed, alive = clan{marker: r.Marker, leader: r.Leader}.end()
	}
	if alive == 0 {
		k.strike(r)
	}
	return killed, alive
}

func (k *Keeper) runs(marker string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.running {
		if c.clan.marker == marker {
			return true
		}
	}
	return false
}

// records reads the folder. A file that is none of ours, or that was being written
// when its process died, says nothing: it is removed.
func (k *Keeper) records() ([]record, error) {
	dir := k.folder()
	if dir == "" {
		return nil, nil
	}
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for programs that were left behind: %w", err)
	}
	var all []record
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			continue // struck off meanwhile
		}
		var r record
		if json.Unmarshal(b, &r) != nil || r.Marker == "" || f.Name() != r.name() {
			if marker, half := strings.CutSuffix(f.Name(), ".json.tmp"); half && !k.runs(marker) { // ours are being written
				_ = os.Remove(filepath.Join(dir, f.Name()))
			}
			continue
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b record) int { return strings.Compare(a.Owner, b.Owner) })
	return all, nil
}

func (r record) name() string { return r.Marker + ".json" }

// write replaces a record as a whole.
func (k *Keeper) write(r record) error {
	dir := k.folder()
	if dir == "" || !leaves {
		return nil
	}
	r.Boot, r.Keeper = boot(), self()
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, r.name())
	if err := os.WriteFile(path+".tmp", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// strike removes a record. One that stays is about nobody, and goes with the next
// Clear.
func (k *Keeper) strike(r record) {
	if dir := k.folder(); dir != "" {
		_ = os.Remove(filepath.Join(dir, r.name()))
	}
}

func (k *Keeper) folder() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dir
}

// self is this process.
func self() identity {
	start, _ := startOf(os.Getpid())
	return identity{os.Getpid(), start}
}

// lives reports whether a process is the one that it was.
func lives(id identity) bool {
	start, ok := startOf(id.PID)
	return ok && start == id.Start
}

func newMarker() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}
