package engine

import (
	"leasehold/internal/fault"
)

// listing is how the Core learns what there is to run.
type listing struct {
	seq         uint64 // of the last list sent; store operations are ordered by it
	outstanding bool
	at          Instant // of the next list
	dirty       bool    // the next one must not be answered with "unchanged"
	version     int64
	doubted     bool // the last one lacked too much to be believed at once
	peers       []Peer
}

// unsure is the owner of a lease of which we know only that it may not be free.
const unsure = "?"

func (c *Core) listDue() {
	l := &c.list
	if l.outstanding || c.now < l.at || !c.session.open || c.session.ending {
		return
	}
	l.outstanding = true
	l.seq++
	l.at = c.now.Add(c.o.timing.RenewEvery)
	known := l.version
	if l.dirty {
		known = 0
	}
	l.dirty = false
	c.emit(actList{l.seq, known})
}

func (c *Core) listed(in inListed) {
	l := &c.list
	if in.seq != l.seq || !l.outstanding {
		return
	}
	l.outstanding = false
	if !c.session.open {
		l.dirty = true
		return
	}
	if in.err != nil {
		if fault.Store(in.err) {
			c.storeSaid(in.err)
		}
		l.dirty = true
		return
	}
	if in.snap.Unchanged {
		c.replan()
		return
	}
	if c.doubt(in.snap) {
		l.doubted, l.dirty = true, true
		return
	}
	l.doubted = false
	l.version = in.snap.Version
	l.peers = in.snap.Peers
	for _, p := range l.peers {
		if p.Session == c.session.id && !c.draining { // else we said so ourselves
			if p.Draining {
				c.leave()
			}
			c.drained = p.Draining
		}
	}
	c.believe(in.snap)
	c.replan()
}

// doubt reports whether a list is to be believed only if the next one says the
// same: it is empty, or lacks more than half of what runs. Rows that say
// disabled or removed are listed, and no reason to doubt.
func (c *Core) doubt(snap Snapshot) bool {
	if c.list.doubted {
		return false
	}
	running, missing := 0, 0
	present := make(map[string]bool, len(snap.Installations))
	for i := range snap.Installations {
		present[snap.Installations[i].ID] = true
	}
	c.each(func(u *unit) {
		if u.held {
			running++
			if !present[u.id] {
				missing++
			}
		}
	})
	return missing > 0 && missing*2 > running
}

// believe makes the list the truth about rows and leases.
func (c *Core) believe(snap Snapshot) {
	seen := make(map[string]bool, len(snap.Installations))
	for i := range snap.Installations {
		row := &snap.Installations[i]
		if row.Via != "" { // a rider has no connection of its own
			continue
		}
		seen[row.ID] = true
		u := c.units[row.ID]
		if u == nil {
			u = c.addUnit(row.ID)
		}
		u.setRow(*row)
	}
	c.emit(actRows{snap.Installations})
	for i := range snap.Leases {
		l := &snap.Leases[i]
		if u := c.units[l.ID]; u != nil {
			c.compareLease(u, *l)
		}
	}
	for _, u := range c.absentUnits(seen) {
		if u.absent++; u.absent >= 2 || !u.held {
			u.row.Enabled, u.row.Removed, u.row.Backlog, u.listed = false, true, false, false
		}
	}
	for _, id := range append([]string(nil), c.ids...) {
		u := c.units[id]
		c.settle(u)
		if !u.listed && u.idle() {
			c.forget(u)
		}
	}
}

func (c *Core) absentUnits(seen map[string]bool) []*unit {
	var absent []*unit
	c.each(func(u *unit) {
		if !seen[u.id] {
			absent = append(absent, u)
		}
	})
	return absent
}

// compareLease holds the lease as listed against what we believe, unless an
// operation of ours on it overlapped the read: then the list may be older than
// the operation, and says nothing.
func (c *Core) compareLease(u *unit, l Lease) {
	overlapped := u.busy > 0 || u.touched >= c.list.seq
	mine := l.Owner == c.session.id
	u.lease = l
	switch {
	case overlapped:
		u.lease.Owner, u.lease.Alive = unsure, true
		c.list.dirty = true
	case !mine && l.Alive && !u.held:
		u.shed = false
	case u.held && (!mine || l.Epoch != u.epoch):
		c.lose(u, "another node has it")
	case !u.held && mine:
		// An answer was lost. Adopting it could revive, from a list older than our
		// own release, what already has another owner.
		c.release(Held{u.id, l.Epoch})
	}
}

// replan recomputes what may be claimed and what should be shed.
func (c *Core) replan() {
	c.plan()
	c.weigh()
	c.handOver()
}
