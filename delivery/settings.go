package delivery

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// Settings are what a Dispatcher delivers by, as far as it can change while it runs.
type Settings struct {
	Node    Node     // what envelopes say of this box
	Total   int      // calls at the same time; DefaultTotal
	Targets []Target // where events go
	Default []string // targets of an installation that names none; empty = all
	Revive  bool     // ask those again that answered 410, as if they were changed; not those that are Off
}

// Change is built from Settings and checked, and not in force yet.
type Change struct {
	d        *Dispatcher
	settings Settings
	setups   []*setup
}

// Prepare builds what s says and changes nothing. Its error has every fault of
// every target, by key. No connection is made.
func (d *Dispatcher) Prepare(s Settings) (*Change, error) {
	s.Total = orDefault(s.Total, DefaultTotal)
	c := &Change{d: d, settings: s}
	var errs []error
	for _, t := range s.Targets {
		made, err := d.equip(t)
		switch {
		case err != nil:
			errs = append(errs, err)
		case c.find(t.Name) != nil:
			errs = append(errs, fmt.Errorf("target %q: name: there are two of this name", t.Name))
		default:
			c.setups = append(c.setups, made)
		}
	}
	for _, name := range s.Default {
		if c.find(name) == nil {
			errs = append(errs, fmt.Errorf("delivery.targets: there is no target %q", name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Change) find(name string) *setup {
	i := slices.IndexFunc(c.setups, func(s *setup) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return c.setups[i]
}

// Apply puts the change in force and names the targets that it added, changed and
// removed, in the order of the settings; the removed ones by name.
//
// A target that is as it was keeps its circuit, its counts and its connections. A
// changed one begins anew with what waits for it: a call under way ends as it
// began, and what it says counts only if it delivered. What waits for a removed one
// is kept, and shown as not configured; what waited for an added one is delivered.
// A changed order holds for what is sent from then on. After Run it does nothing.
func (c *Change) Apply() (added, changed, removed []string) {
	d := c.d
	var idle []io.Closer
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil, nil, nil
	}
	old := d.targets
	d.node, d.total = c.settings.Node, c.settings.Total
	d.targets, d.order = make(map[string]*target, len(c.setups)), make([]*target, 0, len(c.setups))
	for _, s := range c.setups {
		t := old[s.Name]
		switch {
		case t == nil:
			added = append(added, s.Name)
			t = &target{Name: s.Name, setup: s, circuit: s.circuit(now())}
			d.welcome(t)
		case t.same(s) && s.Off != "" && t.state == Disabled:
			t.Off, t.reason = s.Off, s.Off // it was off here before others knew
		case !t.same(s), t.Off != s.Off, t.state == Disabled && c.settings.Revive:
			changed = append(changed, s.Name)
			idle = append(idle, d.replace(t, s)...)
		}
		d.targets[t.Name] = t
		d.order = append(d.order, t)
	}
	for name, t := range old {
		if d.targets[name] == nil {
			removed = append(removed, name)
			idle = append(idle, d.dismiss(t)...)
		}
	}
	slices.Sort(removed)
	d.routing.Store(d.route(c.settings.Default))
	d.ring(d.dispatch)
	d.ring(d.announce)
	d.mu.Unlock()
	for _, s := range idle {
		_ = s.Close() // of connections that nobody uses any more
	}
	return added, changed, removed
}

// circuit is that of a target that begins with s.
func (s *setup) circuit(now instant) circuit {
	if s.Off != "" {
		return circuit{state: Disabled, reason: s.Off, since: now}
	}
	return circuit{state: Closed, since: now}
}

// welcome has what waited for a target read, where it was seen and had none.
func (d *Dispatcher) welcome(t *target) {
	delete(d.strange, t.Name)
	for _, h := range d.holds {
		if h.strange[t.Name] > 0 {
			h.refresh()
		}
	}
}

// replace gives a target another setup; what is known of the old one is forgotten.
// It returns what to close, after the lock.
func (d *Dispatcher) replace(t *target, s *setup) []io.Closer {
	was, now := t.setup, now()
	t.setup, t.single = s, 0
	d.alarms.stop(&t.alarm)
	t.health, t.second = health{}, nil
	d.shift(t, s.circuit(now))
	if q := d.announced[t.Name]; q != nil {
		q.hurry()
		d.ring(q.more)
	}
	for _, h := range d.holds {
		w := h.windows[t]
		switch {
		case w == nil:
		case was.Order != s.Order: // other lanes
			h.abandon(w)
		default: // another age to die at
			for _, l := range w.lanes {
				l.check(now)
			}
			h.tidy(w)
		}
	}
	was.kept = sameSink(was.sink, s.sink)
	return was.retire()
}

// dismiss ends a target that is no longer configured. It returns what to close,
// after the lock.
func (d *Dispatcher) dismiss(t *target) []io.Closer {
	d.alarms.stop(&t.alarm)
	t.second = nil
	d.shift(t, circuit{state: Unknown})
	for _, h := range d.holds {
		if w := h.windows[t]; w != nil {
			h.abandon(w)
		}
	}
	return t.retire()
}

// abandon forgets a window, and has its rows read again. What is under way ends by
// itself; another window of the target waits for that, so that order is kept.
func (h *hold) abandon(w *window) {
	w.close()
	w.gone = true
	for _, e := range h.busy {
		if e.lane != nil && e.lane.window == w {
			h.leftover(w.target.Name, 1)
		}
	}
	delete(h.windows, w.target)
	if len(h.windows) == 0 {
		h.windows = nil
		delete(h.d.active, h)
	}
	h.refresh()
}

// leftover counts what is under way in abandoned windows of a target.
func (h *hold) leftover(name string, n int) {
	if h.leftovers == nil {
		h.leftovers = map[string]int{}
	}
	h.leftovers[name] += n
	if h.leftovers[name] == 0 {
		delete(h.leftovers, name)
		h.refresh()
	}
}

// routing is what Targets goes by. It is fixed: an accept waits for nobody.
type routing struct {
	order    []*setup
	byName   map[string]*setup
	defaults []string
}

func (d *Dispatcher) route(defaults []string) *routing {
	r := &routing{byName: make(map[string]*setup, len(d.order)), defaults: defaults}
	for _, t := range d.order {
		r.order = append(r.order, t.setup)
		r.byName[t.Name] = t.setup
	}
	return r
}
