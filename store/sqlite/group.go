package sqlite

import (
	"time"

	"leasehold/channel"
	"leasehold/internal/fault"
)

const (
	// groupRows is how many events, deliveries' marks and states share a commit.
	// The curve bends at 64 to 256; at 512 a slow disk still gains and nobody waits
	// noticeably longer.
	groupRows = 512
	// groupBytes bounds the bodies of a group: its pages wait in memory and in the
	// log until the commit.
	groupBytes = 16 << 20
	// linger is how long a group waits for those who were woken by the one before.
	// Without it half of many producers form each group, since the first one back
	// starts it alone.
	linger = 500 * time.Microsecond
	// lingerAbove is the commit time from which lingering pays: below it the disk is
	// faster than the wait.
	lingerAbove = 2 * time.Millisecond
)

// item is one caller's part of a group.
type item interface {
	// size is the rows that it counts for, and the bytes.
	size() (rows, bytes int)
	// apply writes it, within the group's transaction. An error is SQLite's; an
	// answer to the caller alone is kept in the item. It may be called again after a
	// rollback.
	apply(g *group) error
	// refuse answers the caller alone: its data cannot be stored.
	refuse(err error)
	// settle wakes the caller: err is the group's failure, nil when it is on the disk.
	settle(err error)
}

// group is what the items of one transaction share. Nobody else writes during
// it, so what a fence answered once holds until the commit.
type group struct {
	w       *writer
	held    map[channel.Term]bool // by term; Run 0: owner and epoch only
	rides   map[[2]string]bool    // by rider and carrier
	changed bool                  // it changed what waits
}

func newGroup(w *writer) *group {
	return &group{w: w, held: map[channel.Term]bool{}, rides: map[[2]string]bool{}}
}

// The owner's session must exist: a session that was reaped is dead for ever,
// and its leases are free although nobody has claimed them yet.
const (
	sqlFence = `SELECT 1 FROM lease WHERE id = $1 AND epoch = $2 AND owner = $3
   AND EXISTS (SELECT 1 FROM session WHERE session_id = $3)`
	sqlFenceRun = `SELECT 1 FROM lease WHERE id = $1 AND epoch = $2 AND owner = $3 AND run = $4
   AND EXISTS (SELECT 1 FROM session WHERE session_id = $3)`
	sqlRides = `SELECT 1 FROM installation WHERE id = $1 AND via = $2`
)

// holds reports whether the lease names the term's owner and epoch.
func (g *group) holds(t channel.Term) (bool, error) {
	t.Run = 0
	held, known := g.held[t]
	if known {
		return held, nil
	}
	held, err := g.w.exists(sqlFence, t.Installation, t.Epoch, t.Owner)
	if err == nil {
		g.held[t] = held
	}
	return held, err
}

// runs reports whether the term is the lease's current one.
func (g *group) runs(t channel.Term) (bool, error) {
	held, known := g.held[t]
	if known && t.Run != 0 {
		return held, nil
	}
	held, err := g.w.exists(sqlFenceRun, t.Installation, t.Epoch, t.Owner, t.Run)
	if err == nil && t.Run != 0 {
		g.held[t] = held
	}
	return held, err
}

// carries reports whether the installation is the lease's own or rides on it.
func (g *group) carries(lease, installation string) (bool, error) {
	if installation == "" || installation == lease {
		return true, nil
	}
	key := [2]string{installation, lease}
	rides, known := g.rides[key]
	if known {
		return rides, nil
	}
	rides, err := g.w.exists(sqlRides, installation, lease)
	if err == nil {
		g.rides[key] = rides
	}
	return rides, err
}

func notCarried(lease, installation string) error {
	return fault.Errorf(fault.Invalid, "installation %s does not ride on %s", installation, lease)
}

// gather takes what waits behind first, up to a group's size.
func (c *committer) gather(first item) []item {
	items := append(make([]item, 0, max(8, c.lastGroup)), first)
	rows, bytes := first.size()
	lingered := c.lastGroup < 2 || c.lastCommit < lingerAbove
	for rows < groupRows && bytes < groupBytes {
		select {
		case i := <-c.tail:
			r, b := i.size()
			rows, bytes, items = rows+r, bytes+b, append(items, i)
			continue
		default:
		}
		if lingered || rows >= groupRows/2 {
			break
		}
		lingered = true
		c.wait(linger)
	}
	c.lastGroup = len(items)
	return items
}

// wait pauses, unless the store closes.
func (c *committer) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.quit:
	}
}

// runGroup commits the items together. The first try is without savepoints: an
// item whose data the database refuses rolls the group back, and it is repeated
// with a savepoint around each, which costs nothing until it happens.
func (c *committer) runGroup(items []item) {
	err := c.s.broken()
	if err == nil {
		err = c.tryGroup(items, false)
		if dataError(err) {
			err = c.tryGroup(items, true)
		}
	}
	for _, i := range items {
		i.settle(err)
	}
}

func (c *committer) tryGroup(items []item, careful bool) error {
	g := newGroup(c.w)
	err := c.transact(func() error {
		for _, i := range items {
			var err error
			if careful {
				err = c.w.attempt(func() error { return i.apply(g) })
			} else {
				err = i.apply(g)
			}
			switch {
			case err == nil:
			case careful && dataError(err):
				i.refuse(classify(c.s.path, err))
			default:
				return err
			}
		}
		return nil
	})
	// Where something is disabled or removed, what is delivered may be the last of
	// its backlog, which List shows.
	if g.changed && c.s.settled.Load() != c.s.structure.Load() {
		c.s.version.Add(1)
	}
	return err
}
