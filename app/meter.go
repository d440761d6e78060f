package app

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"leasehold/app/backlog"
	"leasehold/engine"
	"leasehold/internal/fault"
	"leasehold/internal/metrics"
	"leasehold/store/maintenance"
)

// meter counts what the node does, in memory, and makes the page of metrics. docs/metrics.md
// is made of its families.
type meter struct {
	metrics.Set

	started, built, drained, held, leaked       *metrics.Family
	links, connects, disconnects, wedged        *metrics.Family
	accepted, duplicates, fenced, oversized     *metrics.Family
	claims, renewals, trust                     *metrics.Family
	storeErrors, storeUp, storeBytes            *metrics.Family
	journeys, waiting, oldest, flying, circuits *metrics.Family
	stored, messages, limited, dropped          *metrics.Family
	taskSuccess, taskFailures, violations       *metrics.Family
	diskFree, logBytes                          *metrics.Family
	types                                       atomic.Pointer[map[string]string] // of the installations, by id, as the engine last saw them
	next                                        engine.Observer
	tended                                      atomic.Pointer[maintenance.Tended]
	renewed                                     atomic.Int64 // when the newest renewal that succeeded was asked for, in ms; 0 = never

	page sync.Mutex // held while a page is filled and written
}

func newMeter() *meter {
	m := &meter{}
	m.started = m.Gauge("leasehold_start_time_seconds", "When the process started, in seconds since 1970.")
	m.built = m.Gauge("leasehold_build_info", "Always 1; the version is in the labels.", "version", "goversion")
	m.drained = m.Gauge("leasehold_node_drained", "1 while the node is drained by command.")
	m.held = m.Gauge("leasehold_leases_held", "Leases that this node holds.")
	m.leaked = m.Gauge("leasehold_terms_leaked", "Channels that did not return after their sockets were closed.")
	m.links = m.Gauge("leasehold_links", "Links of this node by state.", "type", "state")
	m.connects = m.Counter("leasehold_connects_total", "Links that a platform said are connected.", "type")
	m.disconnects = m.Counter("leasehold_disconnects_total", "Connected links that ended, by the state that followed.", "type", "to")
	m.wedged = m.Counter("leasehold_terms_wedged_total", "Times that a channel did not return when its sockets were closed.", "type")
	m.accepted = m.Counter("leasehold_events_accepted_total", "Events stored.")
	m.duplicates = m.Counter("leasehold_events_duplicate_total", "Events that were stored before.")
	m.fenced = m.Counter("leasehold_writes_fenced_total", "Writes of events that were refused, since another had the lease.")
	m.oversized = m.Gauge("leasehold_events_oversized", "Events dropped since the start because they were too large.")
	m.claims = m.Counter("leasehold_claims_granted_total", "Leases granted to this node.")
	m.renewals = m.Histogram("leasehold_renew_seconds", "How long renewals of the session took.", 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 3)
	m.trust = m.Gauge("leasehold_fence_seconds", "How long this node would still trust its session if no renewal succeeded any more; absent where it needs none.")
	m.storeErrors = m.Counter("leasehold_store_errors_total", "Calls of the engine that the store did not fulfil, by kind.", "call", "kind")
	m.storeUp = m.Gauge("leasehold_store_up", "1 while the store takes writes.")
	m.storeBytes = m.Gauge("leasehold_store_bytes", "Size of the database and its log.")
	m.journeys = m.Counter("leasehold_delivery_attempts_total", "Outcomes of attempts since the start: delivered, failed, dead.", "target", "outcome")
	m.waiting = m.Gauge("leasehold_target_waiting", "Deliveries of this node that wait for a target, as far as they are in memory.", "target")
	m.oldest = m.Gauge("leasehold_target_oldest_seconds", "Age of the oldest of them.", "target")
	m.flying = m.Gauge("leasehold_target_in_flight", "Calls that run.", "target")
	m.circuits = m.Gauge("leasehold_target_down", "1 while a target is down, and its deliveries wait without using up attempts.", "target")
	m.stored = m.Gauge("leasehold_deliveries", "Deliveries in the store, of all nodes.", "state")
	m.limited = m.Gauge("leasehold_conversations_limited", "Conversations whose next message waits for a limit of its platform, on this node.")
	m.messages = m.Gauge("leasehold_messages_waiting", "Messages that wait to be sent or are on their way, of all nodes.")
	m.dropped = m.Gauge("leasehold_deliveries_gave_way", "Deliveries that gave way to newer events since the start.")
	m.taskSuccess = m.Gauge("leasehold_task_last_success_seconds", "When a task of this node last succeeded, in seconds since 1970.", "task")
	m.taskFailures = m.Gauge("leasehold_task_failures", "Failures of a task since its last success.", "task")
	m.violations = m.Counter("leasehold_self_audit_violations_total", "Events that stood behind a later epoch of their lease; there must be none.")
	m.diskFree = m.Gauge("leasehold_disk_free_bytes", "Free space under the database, at the last upkeep.")
	m.logBytes = m.Gauge("leasehold_store_log_bytes", "Size of the database's log, at the last upkeep.")
	return m
}

// typeOf is an installation's channel type; it is called in the engine's loop, and asks
// nobody.
func (m *meter) typeOf(installation string) string {
	if types := m.types.Load(); types != nil {
		return (*types)[installation]
	}
	return ""
}

var _ engine.Observer = (*meter)(nil)

// Link implements engine.Observer.
func (m *meter) Link(was, now engine.LinkStatus) {
	if was.State != now.State {
		kind := m.typeOf(now.Installation)
		switch {
		case now.State == engine.Connected:
			m.connects.Add(1, kind)
		case was.State == engine.Connected:
			m.disconnects.Add(1, kind, string(now.State))
		}
		if now.State == engine.Wedged {
			m.wedged.Add(1, kind)
		}
	}
	m.next.Link(was, now)
}

// Notice implements engine.Observer.
func (m *meter) Notice(installation, code, words string) { m.next.Notice(installation, code, words) }

// Store implements engine.Observer.
func (m *meter) Store(err error) { m.next.Store(err) }

// metered is the engine's store, with what it answers counted.
type metered struct {
	*backlog.Backlog
	m *meter
}

var _ engine.Store = metered{}

func (s metered) failed(call string, err error) {
	if err != nil && !errors.Is(err, engine.ErrFenced) && !errors.Is(err, context.Canceled) {
		s.m.storeErrors.Add(1, call, fault.Of(err).String())
	}
}

// List implements engine.Store.
func (s metered) List(ctx context.Context, known int64) (engine.Snapshot, error) {
	snap, err := s.Backlog.List(ctx, known)
	if err == nil && !snap.Unchanged {
		types := make(map[string]string, len(snap.Installations))
		for _, i := range snap.Installations {
			types[i.ID] = i.Type
		}
		s.m.types.Store(&types)
	}
	s.failed("list", err)
	return snap, err
}

// Accept implements engine.Store.
func (s metered) Accept(ctx context.Context, r engine.AcceptRequest) (engine.Accepted, error) {
	got, err := s.Backlog.Accept(ctx, r)
	switch {
	case err == nil:
		s.m.accepted.Add(float64(len(r.Events) - got.Duplicates))
		s.m.duplicates.Add(float64(got.Duplicates))
	case errors.Is(err, engine.ErrFenced):
		s.m.fenced.Add(1)
	}
	s.failed("accept", err)
	return got, err
}

// Claim implements engine.Store.
func (s metered) Claim(ctx context.Context, session string, ids []string) ([]engine.Grant, error) {
	got, err := s.Backlog.Claim(ctx, session, ids)
	s.m.claims.Add(float64(len(got)))
	s.failed("claim", err)
	return got, err
}

// RenewSession implements engine.Store.
func (s metered) RenewSession(ctx context.Context, id string, ttl time.Duration) (engine.Session, error) {
	began := time.Now()
	got, err := s.Backlog.RenewSession(ctx, id, ttl)
	s.m.renewals.Observe(time.Since(began).Seconds())
	if err == nil {
		s.m.renewed.Store(began.UnixMilli())
	}
	s.failed("renew", err)
	return got, err
}
