package engine

import (
	"context"
	"sort"
	"time"

	"leasehold/channel"
	"leasehold/internal/fault"
)

// Status is the truth about a node, from memory.
type Status struct {
	Instance  string
	Session   string // "" = none is open
	Sole      bool   // proven by a lock to be the only process
	Store     error  // why the store takes nothing; nil = it does
	Draining  bool   // the process is about to end
	Drained   bool   // by command: it holds nothing until it is resumed
	Held      int    // leases
	Connected int
	Leaked    int // channels that did not return after their sockets were closed
	Oversized int64
	Links     []LinkStatus // of what this node holds or sees, by id
}

type nodeRecord struct {
	session   string
	sick      error
	draining  bool
	drained   bool
	held      int
	leaked    int
	oversized int64
}

// linkRecord is the state of one link and what its terms last saw.
type linkRecord struct {
	status    LinkStatus
	term      channel.Term
	lastReady time.Time
	lastEvent time.Time
	dirty     bool
}

// Status returns the state of the node and of every link.
func (s *Supervisor) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.node
	st := Status{
		Instance: s.o.Instance, Session: n.session, Sole: s.core.o.sole, Store: n.sick, Draining: n.draining, Drained: n.drained,
		Held: n.held, Leaked: n.leaked, Oversized: n.oversized, Links: make([]LinkStatus, 0, len(s.links)),
	}
	for _, l := range s.links {
		st.Links = append(st.Links, l.full())
		if l.status.State == Connected {
			st.Connected++
		}
	}
	sort.Slice(st.Links, func(i, j int) bool { return st.Links[i].Installation < st.Links[j].Installation })
	return st
}

func (l *linkRecord) full() LinkStatus {
	full := l.status
	full.LastReady, full.LastEvent = l.lastReady, l.lastEvent
	return full
}

// noteNode copies what Status shows of the Core. Run's goroutine calls it.
func (s *Supervisor) noteNode() {
	session := ""
	if s.core.session.open {
		session = s.core.session.id
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, is := s.node.sick != nil, s.core.sick != nil; was != is {
		s.o.Observer.Store(s.core.sick)
		if was {
			s.statuses.poke() // what was kept in memory can be written now
		}
	}
	switch is := s.core.drained; {
	case is && !s.node.drained:
		s.log.Info("node drained")
	case !is && s.node.drained:
		s.log.Info("node resumed")
	}
	s.node.drained = s.core.drained
	s.node.session, s.node.sick, s.node.draining = session, s.core.sick, s.core.draining
	s.node.held, s.node.leaked = s.core.holding, s.core.leaked
}

// setStatus takes a new state from the Core, tells it, and has it written.
func (s *Supervisor) setStatus(a actStatus) {
	now := s.o.Clock.Wall().UTC()
	st := a.status
	st.Since = now
	if a.next > 0 {
		st.NextAttempt = now.Add(a.next.Sub(s.o.Clock.Boot()))
	}
	s.mu.Lock()
	l := s.links[st.Installation]
	if l == nil {
		l = &linkRecord{}
		s.links[st.Installation] = l
	}
	was := l.status
	if was.State == st.State && was.Reason == st.Reason {
		st.Since = was.Since
	}
	l.status, l.term, l.dirty = st, a.t, a.t.Epoch > 0
	if st.State == Disabled && a.t.Epoch == 0 && st.Reason == "" {
		delete(s.links, st.Installation)
	}
	s.mu.Unlock()
	s.statuses.poke()
	s.tell(was, st)
	s.o.Observer.Link(was, st)
}

// tell logs what an operator wants to know of a change of state.
func (s *Supervisor) tell(was, now LinkStatus) {
	log := s.log.With("installation", now.Installation)
	if !now.NextAttempt.IsZero() {
		log = log.With("until", now.NextAttempt)
	}
	switch now.State {
	case Backoff:
		log.Info("backing off", "reason", now.Reason, "detail", now.Detail, "attempts", now.Attempts)
	case Blocked:
		log.Warn("blocked", "reason", now.Reason, "detail", now.Detail)
	case Wedged:
		log.Error("wedged", "detail", now.Detail)
	case Draining:
		if now.Reason == "lease_lost" && was.Reason != now.Reason {
			log.Warn("lease lost", "detail", now.Detail)
		}
	default:
	}
}

// statusWriter writes changed states, at most once a second, and nothing while
// nothing changes.
type statusWriter struct{ wake chan struct{} }

const statusEvery = time.Second

func (w *statusWriter) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (s *Supervisor) writeStatuses(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.statuses.wake:
		}
		// Wait first: a link that comes up passes three states within the second.
		select {
		case <-ctx.Done():
			s.saveStatuses()
			return
		case <-time.After(statusEvery):
		}
		s.saveStatuses()
	}
}

func (s *Supervisor) saveStatuses() {
	var batch []TermStatus
	s.mu.Lock()
	if s.node.sick != nil {
		s.mu.Unlock()
		return // kept in memory until a probe is written
	}
	for _, l := range s.links {
		if l.dirty {
			batch = append(batch, TermStatus{Term: l.term, Status: l.full()})
			l.dirty = false
		}
	}
	s.mu.Unlock()
	if len(batch) == 0 {
		return
	}
	sort.Slice(batch, func(i, j int) bool { return batch[i].Term.Installation < batch[j].Term.Installation })
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Timing.AttemptTimeout)
	defer cancel()
	if err := s.store.SaveStatus(ctx, batch); err != nil {
		s.mu.Lock()
		for _, b := range batch {
			if l := s.links[b.Status.Installation]; l != nil {
				l.dirty = true
			}
		}
		s.mu.Unlock()
		_ = s.heard(err)
		if !fault.Store(err) {
			s.log.Warn("save link states failed", "error", err)
		}
		s.statuses.poke()
	}
}
