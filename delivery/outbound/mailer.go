package outbound

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"leasehold/channel"
	"leasehold/internal/loop"
)

// Options are what a Mailer is made with, beside its postbox. The zero value of a
// field is its default.
type Options struct {
	Log *slog.Logger // nil = nobody is told
	// Total is how many messages, of all leases, are on their way at once; 256, as
	// for deliveries.
	Total int
	// PerLease is how many of one lease are, each of another conversation; 16, since
	// they share one connection and one account's rate limits.
	PerLease int
	// Changed holds a value when another process may have posted something; nil =
	// never. Poll is how often that is looked for besides; 0 = never. Whoever posts in
	// this process calls Wake.
	Changed <-chan struct{}
	Poll    time.Duration
	// Idempotent reports whether the platform of an installation drops the second of two
	// messages with one id. It is asked only when it is not known what became of a
	// message. nil = none does.
	Idempotent func(ctx context.Context, installation string) bool
	// FollowUp opens the follow-up address that came with an event of an installation. An
	// error is told, and the message goes the ordinary way. nil = none can be opened.
	FollowUp func(ctx context.Context, installation, event string, sealed []byte) (channel.Secret, error)
	Random   func() float64 // in [0, 1), for jitter; nil = math/rand
}

// Mailer sends the messages of the leases that this node holds. Its methods are safe
// for concurrent use. It has one goroutine; each lease that has messages has one
// more, and each message on its way.
type Mailer struct {
	box   Postbox
	opts  Options
	log   *slog.Logger
	slots chan struct{} // one for each message on its way
	ring  chan struct{} // somebody may have messages

	mu    sync.Mutex       // guards what follows, and in each hold what says so
	holds map[string]*hold // by lease
	start func(*hold)      // runs a hold's queue; nil unless the mailer runs
	ran   bool
}

// New makes a Mailer that stands still until Run.
func New(box Postbox, o Options) *Mailer {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Total <= 0 {
		o.Total = 256
	}
	if o.PerLease <= 0 {
		o.PerLease = 16
	}
	if o.Idempotent == nil {
		o.Idempotent = func(context.Context, string) bool { return false }
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return &Mailer{
		box: box, opts: o, log: o.Log, slots: make(chan struct{}, o.Total), ring: make(chan struct{}, 1), holds: map[string]*hold{},
	}
}

// Run sends until ctx ends. Sends that run then are broken off; what is known of
// them is stored, within lastWrites. It returns nil, and its goroutines are gone. It
// runs once.
func (m *Mailer) Run(ctx context.Context) error {
	var queues sync.WaitGroup
	m.mu.Lock()
	again := m.ran
	m.ran = true
	m.start = func(h *hold) {
		calls, writes := h.contexts(ctx)
		queues.Go(func() { newQueue(m, h).run(calls, writes) })
	}
	m.mu.Unlock()
	if again {
		return errors.New("run the mailer: it was run before")
	}
	poke(m.ring)
	m.heed(ctx)

	m.mu.Lock()
	m.start = nil
	for _, h := range m.holds {
		h.leave()
		h.breakOff()
	}
	m.mu.Unlock()
	late := time.AfterFunc(lastWrites, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, h := range m.holds {
			h.end()
		}
	})
	queues.Wait()
	late.Stop()
	return nil
}

// heed looks whenever somebody may have messages, until ctx ends.
func (m *Mailer) heed(ctx context.Context) {
	var poll <-chan time.Time
	if m.opts.Poll > 0 {
		t := time.NewTicker(m.opts.Poll)
		defer t.Stop()
		poll = t.C
	}
	again := time.NewTimer(0)
	defer again.Stop()
	<-again.C
	for fails := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-m.ring:
			if loop.Sleep(ctx, lookLinger) != nil {
				return
			}
			select { // those who rang meanwhile are looked for now
			case <-m.ring:
			default:
			}
		case <-m.opts.Changed:
		case <-poll:
		case <-again.C:
		}
		err := m.look(ctx)
		if err == nil {
			fails = 0
			again.Stop()
			continue
		}
		if fails++; fails == 1 && ctx.Err() == nil {
			m.log.WarnContext(ctx, "messages unreadable", "error", err)
		}
		again.Reset(storeWait(fails))
	}
}

// look asks under which leases messages wait, and has those served that are held
// here.
func (m *Mailer) look(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	leases, err := m.box.Laden(limited)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, lease := range leases {
		if h := m.holds[lease]; h != nil {
			m.serve(h, lookAll)
		}
	}
	return nil
}

// Hold takes over the messages of a lease.
func (m *Mailer) Hold(t channel.Term) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.holds[t.Installation]; old != nil { // against the contract; the newer grant is right
		old.leave()
		old.end()
	}
	m.holds[t.Installation] = &hold{m: m, term: t, wake: make(chan struct{}, 1)}
	poke(m.ring)
}

// Live lends the sender of the term's connection until the term ends, which Live
// with the same term and nil tells. A channel.Limited is asked for its limits; they
// hold, as all that is known of them does, until another one says others.
func (m *Mailer) Live(t channel.Term, s channel.Sender) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.holds[t.Installation]
	if h == nil || h.term.Epoch != t.Epoch || s == nil && h.run != t.Run {
		return
	}
	if l, ok := s.(channel.Limited); ok {
		h.throttle.set(l.Limits())
	}
	h.sender, h.run = s, t.Run
	poke(h.wake)
}

// Wake tells that messages were posted under a lease. One that is not held is
// nobody's here.
func (m *Mailer) Wake(lease string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.holds[lease]; h != nil {
		m.serve(h, lookNew)
	}
}

// Limited says for which limit a message into a conversation of an installation, under
// a lease that is held here, has to wait right now; "" = for none.
func (m *Mailer) Limited(lease, installation, conversation string) string {
	m.mu.Lock()
	h := m.holds[lease]
	m.mu.Unlock()
	if h == nil {
		return ""
	}
	_, why := h.throttle.waits(installation, conversation)
	return why
}

// Held counts the conversations whose next message waits for a limit.
func (m *Mailer) Held() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.holds {
		n += h.held
	}
	return n
}

// serve has a hold's queue look at the store, and runs it if it does not run. m.mu
// is held.
func (m *Mailer) serve(h *hold, how looking) {
	h.look = max(h.look, how)
	switch {
	case h.leaving:
	case h.busy:
		poke(h.wake)
	case m.start != nil:
		h.busy = true
		m.start(h)
	}
}

// Drop gives a lease up: nothing new is sent; what is on its way gets a short grace,
// then it is broken off, and what is known of it is stored. What is not by the end
// of ctx is unknown to the next holder.
func (m *Mailer) Drop(ctx context.Context, t channel.Term) {
	m.mu.Lock()
	h := m.holds[t.Installation]
	if h == nil || h.term.Epoch != t.Epoch {
		m.mu.Unlock()
		return
	}
	h.leave()
	idle := h.idle
	m.mu.Unlock()

	grace := time.NewTimer(dropGrace)
	defer grace.Stop()
	select {
	case <-idle:
	case <-grace.C:
	case <-ctx.Done():
	}
	m.mu.Lock()
	h.breakOff()
	m.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	h.end()
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
