package child

import (
	"time"

	"golang.org/x/sys/unix"
)

// lookEvery is the least time between two looks: a look reads a few files for each
// process of the machine, and there may be hundreds of programs that ask for one.
const lookEvery = 10 * time.Second

// Look looks who belongs to the programs that run, so that it is known when their
// ways part, and reaps those who have ended and whose parents were gone. It is
// called now and then while a program runs; more than once in ten seconds it does
// nothing.
func (k *Keeper) Look() {
	if !k.due() {
		return
	}
	t, err := readTable()
	if err != nil {
		return // next time
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	leaders, ours := map[int]bool{}, map[identity]bool{}
	for c := range k.running {
		leader := c.clan.leader
		if leader.PID == 0 {
			continue // being started
		}
		leaders[leader.PID] = true
		known := map[identity]bool{}
		for _, p := range c.clan.of(t) {
			known[p.identity], ours[p.identity] = true, true
		}
		c.clan.known = known
	}
	k.bury(t, leaders, ours)
}

// bury reaps the dead whose parent we have become. One that nobody knows was
// started and abandoned between two looks; it has a group and a session that are
// not ours, and is left to others of this process for as long as a look lasts, in
// case they have started it and wait for it.
func (k *Keeper) bury(t *table, leaders map[int]bool, ours map[identity]bool) {
	group, session := unix.Getpgrp(), 0
	if id, err := unix.Getsid(0); err == nil {
		session = id
	}
	suspects := map[identity]bool{}
	for _, p := range t.all {
		switch {
		case !p.dead || p.parent != t.self || leaders[p.PID]:
		case ours[p.identity]:
			reap(p.PID)
		case k.suspects[p.identity]:
			if !reap(p.PID) {
				suspects[p.identity] = true
			}
		case p.group != group && p.session != session:
			suspects[p.identity] = true
		}
	}
	k.suspects = suspects
}

// due reports whether it is time to look, and if so takes the turn.
func (k *Keeper) due() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); now.Sub(k.lookedAt) >= lookEvery {
		k.lookedAt = now
		return true
	}
	return false
}
