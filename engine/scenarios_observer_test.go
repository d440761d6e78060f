package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"leasehold/channel"
	"leasehold/engine"
	"leasehold/internal/fault"
)

// diary is an Observer that keeps what it is told, each in a few words.
type diary struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (d *diary) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) Link(was, now engine.LinkStatus) {
	d.add("%s: %s to %s %s", now.Installation, was.State, now.State, now.Reason)
}
func (d *diary) Notice(id, code, words string) { d.add("%s: notice %s %s", id, code, words) }
func (d *diary) Store(err error)               { d.add("store: %v", err) }

// take returns what was added since the last take.
func (d *diary) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	d.lines = nil
	return lines
}

func observesInOrder(r *rig) {
	s := r.open()
	r.install(s, "acme")
	d := &diary{}
	n := r.start("a", s, func(o *engine.Options) { o.Observer = d })
	expect := func(what string, want ...string) {
		r.Helper()
		pass(time.Second)
		if got := d.take(); !slices.Equal(got, want) {
			r.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	r.within(5*time.Second, "connected", func() bool { return n.link("acme").State == engine.Connected })
	expect("at the start", "acme:  to standby ", "acme: standby to connecting ", "acme: connecting to connected ")

	r.platform.set("acme", rule{run: func(_ context.Context, l *channel.Link) error {
		l.Notice("session_lost", "forgotten")
		return channel.Rejected("auth", fmt.Errorf("revoked"))
	}})
	r.put(s, "acme", "test", "2")
	n.sup.Trigger()
	r.within(5*time.Second, "blocked", func() bool { return n.link("acme").State == engine.Blocked })
	expect("rejected", "acme: connected to connecting replaced", "acme: connecting to connecting ",
		"acme: notice session_lost forgotten", "acme: connecting to blocked auth")

	full := fault.Errorf(fault.Full, "no space")
	n.store.breakNext("status", storeRule{times: 1, err: full})
	n.store.breakNext("probe", storeRule{times: 1, err: full})
	r.platform.set("acme", rule{})
	r.put(s, "acme", "test", "3")
	n.sup.Trigger()
	r.within(20*time.Second, "ill", func() bool { return n.sup.Status().Store != nil })
	r.within(20*time.Second, "well again", func() bool {
		return n.link("acme").State == engine.Connected && n.sup.Status().Store == nil
	})
	expect("a full store", "acme: blocked to connecting ", "acme: connecting to connected ", "acme: connected to backoff store_full",
		"store: no space", "acme: backoff to connecting ", "store: <nil>", "acme: connecting to connected ")
	n.finish()
}
