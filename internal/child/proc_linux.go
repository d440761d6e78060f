package child

import (
	"bytes"
	"io"
	"os"
	"strconv"
)

// process is a line of the system's table of processes. Its start counts ticks
// since the boot.
type process struct {
	identity
	parent, group, session int
	dead                   bool // it waits to be reaped
}

// table is the system's table of processes at one moment, or nearly: it is read
// one line after another while it changes.
type table struct {
	all   []process
	self  int
	marks map[int]string
}

func readTable() (*table, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close() // it was only read
	if err != nil {
		return nil, err
	}
	t := &table{self: os.Getpid(), marks: map[int]string{}}
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := readProcess(pid); ok {
				t.all = append(t.all, p)
			}
		}
	}
	return t, nil
}

// readProcess reads /proc/PID/stat; false: there is no such process any more.
func readProcess(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(pid, b)
}

// parseStat reads the line of proc_pid_stat(5). The name in parentheses may hold
// anything, parentheses too, so the fields count from the last one.
func parseStat(pid int, line []byte) (process, bool) {
	end := bytes.LastIndexByte(line, ')')
	if end < 0 {
		return process{}, false
	}
	fields := bytes.Fields(line[end+1:])
	const state, parent, group, session, start = 0, 1, 2, 3, 19 // the line's fields 3 to 6 and 22
	if len(fields) <= start {
		return process{}, false
	}
	var broken error
	number := func(i int) int {
		n, err := strconv.Atoi(string(fields[i]))
		if err != nil {
			broken = err
		}
		return n
	}
	p := process{
		identity: identity{PID: pid, Start: uint64(number(start))},
		parent:   number(parent), group: number(group), session: number(session),
		dead: bytes.ContainsAny(fields[state], "ZXx"),
	}
	return p, broken == nil
}

func startOf(pid int) (uint64, bool) {
	p, ok := readProcess(pid)
	return p.Start, ok && !p.dead
}

// maxEnviron bounds what is read of an environment: Linux starts no program with
// more than a few MiB, and the marker stands first in ours.
const maxEnviron = 1 << 20

// marker is the marker that a process carries; "" = none, or it is not ours to read.
func (t *table) marker(pid int) string {
	if m, ok := t.marks[pid]; ok {
		return m
	}
	m := readMarker(pid)
	t.marks[pid] = m
	return m
}

func readMarker(pid int) string {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	b, _ := io.ReadAll(io.LimitReader(f, maxEnviron)) // what was read before an error may hold it
	return markerIn(b)
}

// markerIn finds the marker in an environment as the system keeps it.
func markerIn(environ []byte) string {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(Marker+"=")); ok {
			return string(value)
		}
	}
	return ""
}
