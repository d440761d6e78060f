package outbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"leasehold/channel"
)

// faultMode is how a call of the postbox goes.
type faultMode int

const (
	works     faultMode = iota
	fails               // nothing was written
	persisted           // it was written, and the answer was lost
)

var errFake = errors.New("disk on fire")

// fakeBox is a postbox in memory that fails in both ways.
type fakeBox struct {
	mu     sync.Mutex
	rows   []*fakeRow
	leases map[string]channel.Term
	calls  map[string]int
	read   int // rows that Outgoing returned
	fault  func(op string) faultMode
	lag    time.Duration // how long BeginSending takes
}

type fakeRow struct {
	Message
	lease, typ string
	state      State
	epoch      int64
	doubt      bool
	attempts   int
	due, until time.Time
	words      string
	receipt    string
	event      string
	sealed     []byte
	body       []byte // in place of the message's
}

func newBox() *fakeBox {
	return &fakeBox{leases: map[string]channel.Term{}, calls: map[string]int{}}
}

// grant gives a lease a new owner and epoch.
func (f *fakeBox) grant(lease string) channel.Term {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.leases[lease]
	t.Installation, t.Epoch, t.Run = lease, t.Epoch+1, t.Run+1
	t.Owner = fmt.Sprint("session-", t.Epoch)
	f.leases[lease] = t
	return t
}

// post stores a message for a conversation of a lease and returns its seq.
func (f *fakeBox) post(lease, conversation string, change ...func(*fakeRow)) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	seq := int64(len(f.rows) + 1)
	r := &fakeRow{lease: lease, typ: "fake", until: wall().Add(DefaultExpiry)}
	r.Message.Message = channel.Message{ID: fmt.Sprint("out_", seq), Installation: lease, Op: "send", Conversation: conversation, Text: fmt.Sprint("text ", seq)}
	for _, c := range change {
		c(r)
	}
	f.rows = append(f.rows, r)
	return seq
}

func (f *fakeBox) mode(op string) faultMode {
	f.calls[op]++
	if f.fault == nil {
		return works
	}
	return f.fault(op)
}

func (f *fakeBox) breaks(fault func(op string) faultMode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

func (f *fakeBox) Laden(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mode("laden") != works {
		return nil, errFake
	}
	var leases []string
	for _, r := range f.rows {
		if !r.state.Done() && !slices.Contains(leases, r.lease) {
			leases = append(leases, r.lease)
		}
	}
	return leases, nil
}

func (f *fakeBox) Outgoing(_ context.Context, lease string, after int64, limit int) ([]Item, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mode("outgoing") != works {
		return nil, errFake
	}
	var items []Item
	for i, r := range f.rows {
		seq := int64(i + 1)
		if r.lease != lease || r.state.Done() || seq <= after || len(items) == limit {
			continue
		}
		edits := ""
		if r.Op == "edit" {
			edits = r.MessageID
		}
		items = append(items, Item{
			Edits: edits,
			Seq:   seq, ID: r.ID, Installation: r.Installation, ChannelType: r.typ, Conversation: r.Conversation, State: r.state,
			Attempts: r.attempts, Due: max(0, r.due.Sub(wall())), Left: max(0, r.until.Sub(wall())),
		})
	}
	f.read += len(items)
	return items, nil
}

func (f *fakeBox) holds(t channel.Term) bool {
	now := f.leases[t.Installation]
	return now.Owner == t.Owner && now.Epoch == t.Epoch
}

func (f *fakeBox) BeginSending(_ context.Context, t channel.Term, seq int64) (TakenUp, error) {
	time.Sleep(f.lag)
	f.mu.Lock()
	defer f.mu.Unlock()
	mode := f.mode("begin")
	if mode == fails {
		return TakenUp{}, errFake
	}
	r, err := f.rows[seq-1], error(nil)
	switch {
	case !f.holds(t):
		err = ErrFenced
	case r.lease != t.Installation, r.state != Queued && (r.state != Sending || r.epoch != t.Epoch):
		err = ErrSettled
	case r.state == Queued && !wall().Before(r.until):
		r.state, err = Expired, ErrExpired
		r.lapse()
	default:
		r.state, r.epoch = Sending, t.Epoch
	}
	if mode == persisted {
		return TakenUp{}, errFake
	}
	l := Letter{Message: r.Message.Message}
	if r.body != nil {
		err = errors.Join(err, DecodeBody(r.body, &l))
	}
	if err == nil {
		err = DecodeProgress([]byte(r.receipt), &l)
	}
	m := TakenUp{Letter: l, Event: r.event, Sealed: r.sealed}
	for _, o := range f.rows {
		if o.ID == m.MessageID && o.Installation == m.Installation {
			m.Named = &Named{State: o.state, Receipt: []byte(o.receipt)}
		}
	}
	return m, err
}

func (f *fakeBox) EndSending(_ context.Context, e End) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	mode := f.mode("end")
	if mode == fails {
		return errFake
	}
	r, err := f.rows[e.Seq-1], error(nil)
	from := Sending
	if e.State == Expired {
		from = Queued
	}
	switch {
	case !f.holds(e.Term):
		err = ErrFenced
	case r.state != from:
		err = ErrSettled
	default:
		r.state, r.epoch, r.words, r.due = e.State, e.Term.Epoch, e.Error, wall().Add(e.Wait)
		if e.Body != nil {
			r.body = e.Body
		}
		if e.Count {
			r.attempts++
		}
		if e.State == Expired {
			r.lapse()
		}
		r.doubt = r.doubt || e.Doubt
		if e.Receipt != nil {
			r.receipt, r.doubt = string(e.Receipt), false
		}
	}
	if mode == persisted {
		return errFake
	}
	return err
}

// lapse is what an expiry makes of what was begun.
func (r *fakeRow) lapse() {
	switch {
	case r.doubt:
		r.state = Unknown
	case r.receipt != "":
		r.state, r.words = Refused, Partly
	}
}

// row is a message as it is stored.
func (f *fakeBox) row(seq int64) fakeRow {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *f.rows[seq-1]
}

func (f *fakeBox) called(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// platform takes messages, as slow and as wrong as a test wants.
type platform struct {
	channel.Channel
	mu    sync.Mutex
	taken []string // ids, in order, each time
	tries []try
	onWay map[string]int // by conversation
	most  int            // at once

	shared  bool // several processes speak through it, which the engine would prevent
	dedupes bool // the second message with one id is dropped
	limits  channel.Limits
	writes  channel.Writing
	texts   map[string]string // of what was taken, by id
	answer  func(m channel.Message, n int) (took time.Duration, taken bool, err error)
}

type try struct {
	id string
	at time.Duration
}

var epoch2000 = time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC) // when a bubble's mailer is ready

func (p *platform) Send(ctx context.Context, m channel.Message) (channel.Receipt, error) {
	p.mu.Lock()
	if p.onWay == nil {
		p.onWay = map[string]int{}
	}
	p.onWay[m.Conversation]++
	all := 0
	for _, n := range p.onWay {
		all += n
	}
	p.most = max(p.most, all)
	if p.onWay[m.Conversation] > 1 && !p.shared {
		panic("two messages of a conversation at once")
	}
	n := 0
	for _, t := range p.tries {
		if t.id == m.ID {
			n++
		}
	}
	p.tries = append(p.tries, try{m.ID, time.Since(epoch2000)})
	answer := p.answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.onWay[m.Conversation]--
	}()
	took, taken, err := time.Duration(0), true, error(nil)
	if p.dedupes && slices.Contains(p.got(), m.ID) {
		return channel.Receipt{MessageID: "m-" + m.ID}, nil
	}
	if answer != nil {
		took, taken, err = answer(m, n)
	}
	if taken {
		p.mu.Lock()
		p.taken = append(p.taken, m.ID)
		if p.texts == nil {
			p.texts = map[string]string{}
		}
		p.texts[m.ID] = m.Text
		p.mu.Unlock()
	}
	if took > 0 {
		select {
		case <-time.After(took):
		case <-ctx.Done():
			return channel.Receipt{}, fmt.Errorf("broken off: %w", ctx.Err())
		}
	}
	return channel.Receipt{MessageID: "m-" + m.ID}, err
}

// Writes implements channel.Writer.
func (p *platform) Writes() channel.Writing { return p.writes }

// text is what the platform has of a message.
func (p *platform) text(id string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.texts[id]
}

// Limits implements channel.Limited.
func (p *platform) Limits() channel.Limits { return p.limits }

// got are the ids that the platform has taken, in order.
func (p *platform) got() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.taken)
}

// atOnce is how many were on their way at the same time, at most.
func (p *platform) atOnce() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}

// times are when a message was tried.
func (p *platform) times(id string) (at []time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.tries {
		if t.id == id {
			at = append(at, t.at.Round(time.Millisecond))
		}
	}
	return at
}

// world is a mailer over a postbox and a platform.
type world struct {
	*testing.T
	box      *fakeBox
	platform *platform
	m        *Mailer
	stop     func()
}

func newWorld(t *testing.T, change ...func(*Options)) *world {
	w := &world{T: t, box: newBox(), platform: &platform{}}
	w.begin(change...)
	return w
}

// begin runs a new mailer, as a new process does.
func (w *world) begin(change ...func(*Options)) {
	o := Options{Random: func() float64 { return 0 }}
	for _, c := range change {
		c(&o)
	}
	w.m = New(w.box, o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func(m *Mailer) { done <- m.Run(ctx) }(w.m)
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("Run: got %v, want nil", err)
		}
	})
	w.Cleanup(w.stop)
	time.Sleep(time.Second) // it has looked, and found nothing
}

// live holds a lease with a connection.
func (w *world) live(lease string) channel.Term {
	t := w.box.grant(lease)
	w.m.Hold(t)
	w.m.Live(t, w.platform)
	return t
}

func (w *world) post(lease, conversation string, change ...func(*fakeRow)) int64 {
	seq := w.box.post(lease, conversation, change...)
	w.m.Wake(lease)
	return seq
}

func (w *world) is(seq int64, state State, words string) fakeRow {
	w.Helper()
	r := w.box.row(seq)
	if r.state != state || r.words != words {
		w.Errorf("message %d: got %s %q, want %s %q", seq, r.state, r.words, state, words)
	}
	return r
}

func want[V comparable](w *world, what string, got, wanted V) {
	w.Helper()
	if got != wanted {
		w.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

func idempotent(o *Options) { o.Idempotent = func(context.Context, string) bool { return true } }

func expiry(d time.Duration) func(*fakeRow) {
	return func(r *fakeRow) { r.until = wall().Add(d) }
}

// inOrder fails unless each conversation's messages came in the order of posting.
func inOrder(w *world, conversation func(id string) string) {
	w.Helper()
	last := map[string]int{}
	for _, id := range w.platform.got() {
		var n, part int
		_, _ = fmt.Sscanf(id, "out_%d.%d", &n, &part)
		c := conversation(id)
		if cmp.Compare(n*100+part, last[c]) <= 0 {
			w.Errorf("got %s behind out_%d in %s", id, last[c]/100, c)
		}
		last[c] = n*100 + part
	}
}
