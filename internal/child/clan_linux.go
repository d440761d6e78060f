package child

import (
	"maps"
	"os"

	"golang.org/x/sys/unix"
)

// clan is a program with all that it has started.
type clan struct {
	marker string
	leader identity
	known  map[identity]bool // seen among them; they may have left since
}

// of picks the clan's own from the table of processes: the leader, who is in its
// session or group, who carries its marker, who was seen among them before, and
// the children of all of these.
func (f clan) of(t *table) []process {
	in := map[int]bool{}
	numberIsTheirs := f.leader.PID > 0
	for _, p := range t.all {
		if p.PID == f.leader.PID && p.Start != f.leader.Start {
			numberIsTheirs = false // it has been given to somebody else
		}
	}
	for _, p := range t.all {
		switch {
		case p.PID == t.self || p.PID == 1:
		case p.identity == f.leader, f.known[p.identity],
			numberIsTheirs && p.Start >= f.leader.Start && (p.session == f.leader.PID || p.group == f.leader.PID),
			p.Start >= f.leader.Start && t.marker(p.PID) == f.marker:
			in[p.PID] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range t.all {
			if in[p.parent] && !in[p.PID] && p.PID != t.self {
				in[p.PID], grown = true, true
			}
		}
	}
	var own []process
	for _, p := range t.all {
		if in[p.PID] {
			own = append(own, p)
		}
	}
	return own
}

// end kills the clan until nobody of it is left but a dead leader, whom Run reaps.
// The numbers are of processes.
func (f clan) end() (killed, alive int) {
	gone := map[identity]bool{}
	f.known = maps.Clone(f.known)
	if f.known == nil {
		f.known = map[identity]bool{}
	}
	alive = until(func() int {
		t, err := readTable()
		if err != nil {
			return 0 // without /proc there is nobody to be seen; the group was killed
		}
		left := 0
		members := f.of(t)
		for _, p := range members {
			f.known[p.identity] = true // the dead carry no marker
			switch {
			case !p.dead:
				p.kill()
				gone[p.identity] = true
				left++
			case p.PID == f.leader.PID:
			case p.parent == t.self && !reap(p.PID), isParent(members, p): // of whom we are about to become the parent
				left++
			}
		}
		return left
	})
	return len(gone) - alive, alive
}

func isParent(all []process, of process) bool {
	for _, p := range all {
		if p.PID == of.parent {
			return true
		}
	}
	return false
}

// kill kills a process, if it is still the one that was seen.
func (p process) kill() {
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return
	}
	defer func() { _ = handle.Release() }()
	if lives(p.identity) {
		_ = handle.Kill() // it may have ended by itself
	}
}

// reap reports whether nothing is left of a dead process. Its first thread is shown
// as dead while others of it still end.
func reap(pid int) bool {
	n, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return n == pid || err != nil
}
