package sqlite

import (
	"leasehold/channel"
	"leasehold/internal/fault"
)

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
