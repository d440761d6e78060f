package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"leasehold/channel"
	"leasehold/internal/fault"
)

// simStore is a database in a variable. Its methods are what a statement does,
// at the instant at which it commits.
type simStore struct {
	w        *world
	sessions map[string]*simSession
	leases   map[string]*simLease
	rows     map[string]*Installation
	bad      map[string]bool // credentials that the platform rejects
	drained  map[string]bool // nodes, by instance
	ids      []string
	version  int64
	full     bool
	step     time.Duration // of the store's clock
	granted  map[string]int64
	log      []simGrant
}

type simGrant struct {
	at Instant
	id string
	to string // instance
}

type simSession struct {
	instance, host string
	expires        Instant
	draining       bool
	weight         int
}

type simLease struct {
	owner     string
	epoch     int64
	run       int64
	fails     int
	dialled   bool // since the last failure
	notBefore Instant
}

func newSimStore(w *world) *simStore {
	return &simStore{w: w, sessions: map[string]*simSession{}, leases: map[string]*simLease{}, rows: map[string]*Installation{}, bad: map[string]bool{}, drained: map[string]bool{}, granted: map[string]int64{}, version: 1}
}

func (s *simStore) add(id string, r *rand.Rand) {
	s.ids = append(s.ids, id)
	s.rows[id] = &Installation{ID: id, Type: "sim", Fingerprint: "1", Enabled: true}
	s.leases[id] = &simLease{}
	s.bad[id] = r.IntN(6) == 0
}

func (s *simStore) clock() Instant { return s.w.now.Add(s.step) }

var errFull = fault.Errorf(fault.Full, "disk full")

func (s *simStore) open(r SessionRequest) error {
	if s.full {
		return errFull
	}
	for id, old := range s.sessions {
		if old.instance != r.Instance || id == r.ID {
			continue
		}
		if !s.w.sole && (id != r.Previous || old.host != r.Host) && old.expires > s.clock() {
			return ErrIdentityTaken
		}
		delete(s.sessions, id)
	}
	if s.w.sole {
		clear(s.sessions)
	}
	s.sessions[r.ID] = &simSession{instance: r.Instance, host: r.Host, expires: s.clock().Add(r.TTL), draining: s.drained[r.Instance], weight: r.Weight}
	s.version++
	return nil
}

func (s *simStore) drain(id string, draining bool) {
	if have := s.sessions[id]; have != nil {
		have.draining = draining
		s.version++
	}
}

func (s *simStore) end(id string) {
	delete(s.sessions, id)
	s.version++
}

func (s *simStore) renew(id string, ttl time.Duration) error {
	old := s.sessions[id]
	if old == nil {
		return ErrSessionGone
	}
	old.expires = s.clock().Add(ttl)
	return nil
}

func (s *simStore) reap(notAfter Instant) int {
	if s.clock() > notAfter {
		return 0
	}
	n := 0
	for id, old := range s.sessions {
		if old.expires <= s.clock() {
			delete(s.sessions, id)
			s.version++
			n++
		}
	}
	return n
}

func (s *simStore) list(known int64) Snapshot {
	if known == s.version {
		return Snapshot{Version: s.version, Unchanged: true}
	}
	snap := Snapshot{Version: s.version}
	for _, id := range s.ids {
		l := s.leases[id]
		_, alive := s.sessions[l.owner]
		snap.Installations = append(snap.Installations, *s.rows[id])
		snap.Leases = append(snap.Leases, Lease{ID: id, Owner: l.owner, Alive: alive, Epoch: l.epoch})
	}
	for _, n := range s.w.nodes { // in order: a map's would change the trace
		for id, have := range s.sessions {
			if have.instance == n.name {
				snap.Peers = append(snap.Peers, Peer{Session: id, Instance: have.instance, Weight: have.weight, Draining: have.draining})
			}
		}
	}
	return snap
}

func (s *simStore) claim(session string, ids []string) ([]Grant, error) {
	if s.full {
		return nil, errFull
	}
	me := s.sessions[session]
	if me == nil || me.draining {
		return nil, nil
	}
	var grants []Grant
	for _, id := range ids {
		l := s.leases[id]
		if l.owner != "" && s.sessions[l.owner] != nil {
			continue
		}
		if l.owner != "" && l.dialled {
			l.fails++
		}
		l.dialled = false
		l.owner, l.epoch = session, max(l.epoch+1, int64(s.clock()/1e6))
		s.version++
		if l.epoch <= s.granted[id] {
			s.w.broke("%s was granted epoch %d after %d", id, l.epoch, s.granted[id])
		}
		s.granted[id] = l.epoch
		s.log = append(s.log, simGrant{s.w.now, id, me.instance})
		grants = append(grants, Grant{ID: id, Epoch: l.epoch, Run: l.run, Fails: l.fails, Wait: max(0, l.notBefore.Sub(s.clock()))})
	}
	return grants, nil
}

func (s *simStore) holds(t channel.Term) bool {
	l := s.leases[t.Installation]
	return l.owner == t.Owner && l.epoch == t.Epoch && s.sessions[t.Owner] != nil
}

func (s *simStore) begin(t channel.Term) (int64, error) {
	if s.full {
		return 0, errFull
	}
	if !s.holds(t) {
		return 0, ErrFenced
	}
	s.leases[t.Installation].run++
	s.leases[t.Installation].dialled = true
	return s.leases[t.Installation].run, nil
}

func (s *simStore) backoff(t channel.Term, b Setback) error {
	if s.full {
		return errFull
	}
	if !s.holds(t) {
		return ErrFenced
	}
	if l := s.leases[t.Installation]; s.rows[t.Installation].Fingerprint == b.Fingerprint {
		l.fails, l.notBefore, l.dialled = b.Fails, s.clock().Add(b.Wait), false
	}
	return nil
}

func (s *simStore) release(session string, held []Held) {
	freed := false
	defer func() {
		if freed && (s.w.calm || s.w.often(50)) {
			s.w.tellNodes()
		}
	}()
	for _, h := range held {
		l := s.leases[h.ID]
		if l.owner == session && (l.epoch == h.Epoch || s.w.bug == releaseWithoutEpoch) {
			s.w.judgeFreed(h.ID, l)
			l.owner = ""
			s.version++
			freed = true
		}
	}
}

// accept commits one event; the fence of the statement is judged against the
// grant log.
func (s *simStore) accept(t channel.Term) error {
	if s.full {
		return errFull
	}
	if !s.holds(t) || s.leases[t.Installation].run != t.Run {
		return ErrFenced
	}
	if t.Epoch < s.granted[t.Installation] {
		s.w.broke("%s: a write of epoch %d landed after epoch %d was granted", t.Installation, t.Epoch, s.granted[t.Installation])
	}
	return nil
}

var errTimeout = errors.New("store call timed out")

func (l *simLease) String() string {
	return fmt.Sprintf("owner %q epoch %d run %d fails %d", l.owner, l.epoch, l.run, l.fails)
}
