package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"leasehold/channel"
	"leasehold/internal/child"
)

// DefaultTotal is how many calls run at the same time, over all targets. A
// target that has none running may always start one.
const DefaultTotal = 256

// Options are what a Dispatcher is made with, beside its outbox and targets.
type Options struct {
	Node    Node   // what envelopes say of this box
	Agent   string // the User-Agent of calls; "leasehold"
	Log     *slog.Logger
	Total   int                                // calls at the same time; DefaultTotal
	Default []string                           // targets of an installation that names none; empty = all
	Route   func(installation string) []string // the targets that an installation names; none = the default ones
	// Describe tells what a target's Match may ask of an installation; nil = nothing
	// is known of any. It is called while an event is accepted, so it must be fast.
	Describe func(installation string) (channelType string, labels map[string]string)
	Dial     Dialer         // nil = the network
	Programs *child.Keeper  // runs the programs of command targets; nil = one that leaves no record of them
	Environ  []string       // as os.Environ returns it; programs get what every program needs of it
	Random   func() float64 // in [0, 1), for jitter; nil = math/rand
	// Can tells what a channel type can do beside hearing, for what programs answer
	// events of it with; false: there is no such type. nil = there is none.
	Can func(channelType string) (channel.Capabilities, bool)
	// Asks reports whether the program itself answers the interactions of an
	// installation; nil = none does.
	Asks func(installation string) bool
	// Breaker stops answers that go round; nil = nothing does.
	Breaker *Breaker
	// Replied is told that replies were stored under a lease; nil = nobody is. It must
	// not block.
	Replied  func(lease string)
	Clock    Clock    // nil = the wall clock is right
	Observer Observer // nil = nobody is told
}

// Dispatcher delivers for the leases that this node holds. Its methods are safe
// for concurrent use. It has a fixed handful of goroutines and one per call to a
// target; a lease at rest costs a map entry.
type Dispatcher struct {
	outbox  Outbox
	opts    Options
	log     *slog.Logger
	random  func() float64
	limits  limits
	routing atomic.Pointer[routing]

	// Each wakes one kind of goroutine; a ring that nobody has heard yet is enough.
	dispatch, load, mark, flush, clock, announce chan struct{}

	calls sync.WaitGroup

	// mu guards what follows, and everything in holds, windows, lanes, entries,
	// targets and circuits. It is never held over a call to the outbox, a sink or
	// the log.
	mu       sync.Mutex
	started  bool
	closed   bool
	node     Node
	total    int
	targets  map[string]*target
	order    []*target
	holds    map[string]*hold   // by lease
	active   map[*hold]struct{} // those not at rest
	loads    fifo[*hold]
	expired  fifo[*lane] // their heads are too old
	alarms   alarms
	outcomes []*outcome // not stored yet
	unmarked int        // those, and those being stored
	sick     error      // why the store does not take outcomes
	unread   int        // reads of events that failed in a row
	resume   instant    // no dispatch before, after such a failure
	reread   alarm
	passes   uint64
	items    int // entries in memory
	ahead    int // bytes of events read ahead
	largest  int // bytes of the largest event of the last read
	inFlight int
	turn     int // the target that is asked next
	strange  map[string]bool
	askers   map[askKey][]chan json.RawMessage // who waits for the answer to an interaction
	early    []earlyAnswer                     // what came before anybody waited

	announced map[string]*announcements // by target; in memory only

	pulls sync.Map // *pullSink by target
}

// limits are the bounds on memory, and how often what was missed is found. Tests
// make them small, and do without the latter.
type limits struct {
	window, total, page int
	sweep, reread       time.Duration
}

// target is a Target at work.
type target struct {
	Name string
	*setup
	circuit
	health
	ready    fifo[*window] // those with lanes that can go
	second   *lane         // its second entry is the next probe
	inFlight int
	alarm    alarm   // for the next probe
	single   instant // no batch before

	delivered, failed, dead int64
}

// passes reports whether lanes go on without e.
func (t *target) passes(e *entry) bool { return t.OnFailure == Skip && e.attempts >= quickTries }

// New makes a Dispatcher that stands still until Run. Its error has every fault
// of every target, by key.
func New(outbox Outbox, targets []Target, o Options) (*Dispatcher, error) {
	d := &Dispatcher{
		outbox: outbox, opts: o, log: o.Log, random: o.Random,
		limits:   limits{windowSize, totalSize, pageSize, sweepEvery, rereadEvery},
		dispatch: make(chan struct{}, 1), load: make(chan struct{}, 1), mark: make(chan struct{}, 1),
		flush: make(chan struct{}, 1), clock: make(chan struct{}, 1), announce: make(chan struct{}, 1),
		holds: map[string]*hold{}, active: map[*hold]struct{}{}, strange: map[string]bool{}, askers: map[askKey][]chan json.RawMessage{},
		announced: map[string]*announcements{},
	}
	d.largest = largestGuess
	d.alarms.sooner = func() { d.ring(d.clock) }
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.random == nil {
		d.random = rand.Float64
	}
	if d.opts.Can == nil {
		d.opts.Can = func(string) (can channel.Capabilities, known bool) { return can, false }
	}
	if d.opts.Replied == nil {
		d.opts.Replied = func(string) {}
	}
	d.opts.Agent = orDefault(o.Agent, "leasehold")
	if d.opts.Programs == nil {
		d.opts.Programs = child.NewKeeper()
	}
	c, err := d.Prepare(Settings{Node: o.Node, Total: o.Total, Targets: targets, Default: o.Default})
	if err != nil {
		return nil, err
	}
	c.Apply()
	return d, nil
}

// Run delivers until ctx ends. Calls that run then are broken off, which is no
// attempt; outcomes that are known are stored, within lastMarks. It returns nil,
// and its goroutines are gone. It runs once.
func (d *Dispatcher) Run(ctx context.Context) error {
	d.mu.Lock()
	again := d.started
	d.started = true
	d.mu.Unlock()
	if again {
		return errors.New("run delivery: it was run before")
	}
	var work, marks sync.WaitGroup
	marking, stop := context.WithCancel(context.WithoutCancel(ctx))
	marks.Go(func() { d.runMarks(marking) })
	for range loaders {
		work.Go(func() { d.runLoads(ctx) })
	}
	work.Go(func() { d.runDispatch(ctx) })
	work.Go(func() { d.runClock(ctx) })
	work.Go(func() { d.runAnnouncements(ctx) })
	work.Wait()
	d.calls.Wait()
	stop()
	marks.Wait()
	d.close()
	return nil
}

// close lets go of everything, so that a Drop that comes later waits for nothing.
func (d *Dispatcher) close() {
	d.mu.Lock()
	for _, h := range d.holds {
		h.end()
	}
	d.closed = true
	order := d.order
	d.mu.Unlock()
	for _, t := range order {
		if c, ok := t.sink.(io.Closer); ok {
			_ = c.Close()
		}
	}
}

// Targets names who shall have e: the installation's targets, or else the
// default ones, that take it. A target that is named but not configured is
// among them: what is stored for it waits until somebody corrects the name.
func (d *Dispatcher) Targets(t channel.Term, e *channel.Event) []string {
	id := e.Installation
	if id == "" {
		id = t.Installation
	}
	var names []string
	r := d.routing.Load()
	if d.opts.Route != nil {
		names = d.opts.Route(id)
	}
	if len(names) == 0 {
		names = r.defaults
	}
	about := &subject{Event: e, id: id, describe: d.opts.Describe}
	wanted := make([]string, 0, max(len(names), 1))
	if len(names) == 0 {
		for _, t := range r.order {
			if t.takes(about) {
				wanted = append(wanted, t.Name)
			}
		}
		return wanted
	}
	for _, name := range names {
		t := r.byName[name]
		if t == nil {
			t = &setup{Target: Target{Name: name}.withDefaults()}
		}
		if t.takes(about) && !slices.Contains(wanted, name) {
			wanted = append(wanted, name)
		}
	}
	return wanted
}

func (d *Dispatcher) ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
