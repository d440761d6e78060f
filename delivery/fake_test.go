package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"leasehold/channel"
)

// fakeOutbox is an outbox in memory that fails in both ways.
type fakeOutbox struct {
	mu     sync.Mutex
	seq    int64
	leases map[string]channel.Term
	rows   map[string][]*fakeRow // by lease, in order
	byRow  map[row]*fakeRow
	events map[int64]Event
	marks  int // written
	calls  map[string]int
	reads  int // rows that Pending returned

	fault func(op string) faultMode // nil = none
	lag   func() time.Duration      // how long an answer takes on its way; nil = no time
}

type fakeRow struct {
	Item
	lease string
	state State
	err   string
	said  []Reply
}

type faultMode int

const (
	works     faultMode = iota
	fails               // nothing was written
	persisted           // it was written, and the answer was lost
)

var errFake = errors.New("disk on fire")

func newOutbox() *fakeOutbox {
	return &fakeOutbox{
		leases: map[string]channel.Term{}, rows: map[string][]*fakeRow{}, byRow: map[row]*fakeRow{},
		events: map[int64]Event{}, calls: map[string]int{},
	}
}

// grant gives a lease a new epoch.
func (f *fakeOutbox) grant(lease string) channel.Term {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.leases[lease]
	t.Installation, t.Owner = lease, fmt.Sprintf("session-%d", t.Epoch+1)
	t.Epoch++
	f.leases[lease] = t
	return t
}

// add stores an event with a delivery for each target, and returns its seq.
func (f *fakeOutbox) add(lease string, e channel.Event, targets ...string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seq++
	id := cmp.Or(e.Installation, lease)
	e.ID, e.Type = fmt.Sprintf("p%d", f.seq), cmp.Or(e.Type, "message")
	body, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	now := time.Now().Truncate(time.Millisecond)
	f.events[f.seq] = Event{Seq: f.seq, ID: fmt.Sprintf("evt_%d", f.seq), Installation: id, ChannelType: "fake", AcceptedAt: now, Body: body}
	for _, target := range targets {
		r := &fakeRow{lease: lease, Item: Item{
			Seq: f.seq, Target: target, Installation: id, Conversation: e.Conversation.ID, Thread: e.Thread, Type: e.Type,
			WebhookID: fmt.Sprintf("msg_%d_%s", f.seq, target), AcceptedAt: now,
		}}
		f.rows[lease] = append(f.rows[lease], r)
		f.byRow[row{f.seq, target}] = r
	}
	return f.seq
}

// say adds a message in a conversation.
func (f *fakeOutbox) say(lease, conversation string, targets ...string) int64 {
	return f.add(lease, channel.Event{Conversation: channel.Ref{ID: conversation}, Text: "hi"}, targets...)
}

func (f *fakeOutbox) mode(op string) faultMode {
	f.calls[op]++
	if f.fault == nil {
		return works
	}
	return f.fault(op)
}

// late holds an answer back that was true when it was made.
func (f *fakeOutbox) late() {
	if f.lag != nil {
		time.Sleep(f.lag())
	}
}

func (f *fakeOutbox) Pending(_ context.Context, lease string, afterSeq int64, afterTarget string, limit int) ([]Item, error) {
	defer f.late()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mode("pending") != works {
		return nil, errFake
	}
	all, after := f.rows[lease], row{afterSeq, afterTarget}
	i, _ := slices.BinarySearchFunc(all, after, func(r *fakeRow, after row) int {
		if (row{r.Seq, r.Target}).after(after) {
			return 1
		}
		return -1
	})
	var items []Item
	for ; i < len(all) && len(items) < limit; i++ {
		if all[i].state == Pending {
			items = append(items, all[i].Item)
		}
	}
	f.reads += len(items)
	return items, nil
}

func (f *fakeOutbox) Payloads(_ context.Context, seqs []int64) ([]Event, error) {
	defer f.late()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mode("payloads") != works {
		return nil, errFake
	}
	var events []Event
	for _, seq := range seqs {
		if e, ok := f.events[seq]; ok {
			events = append(events, e)
		}
	}
	return events, nil
}

func (f *fakeOutbox) Mark(_ context.Context, marks []Mark) ([]error, error) {
	defer f.late()
	f.mu.Lock()
	defer f.mu.Unlock()
	mode := f.mode("mark")
	if mode == fails {
		return nil, errFake
	}
	errs := make([]error, len(marks))
	once := map[row]bool{}
	for i, m := range marks {
		if once[row{m.Seq, m.Target}] {
			panic("two marks of one delivery in one call: a store may write them in one statement")
		}
		once[row{m.Seq, m.Target}] = true
		r := f.byRow[row{m.Seq, m.Target}]
		t := f.leases[m.Term.Installation]
		if r == nil || r.state != Pending || t.Owner != m.Term.Owner || t.Epoch != m.Term.Epoch {
			errs[i] = ErrMarkFenced
			continue
		}
		r.state, r.err, r.said = m.State, m.Error, append(r.said, m.Replies...)
		r.Attempts = max(0, r.Attempts-m.Back)
		if m.Count {
			r.Attempts++
		}
		r.NextAttempt = time.Now().Add(m.Wait)
		f.marks++
	}
	if mode == persisted {
		return nil, errFake
	}
	return errs, nil
}

// setFault says how the store behaves from now on.
func (f *fakeOutbox) setFault(mode faultMode, ops ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = func(op string) faultMode {
		if slices.Contains(ops, op) {
			return mode
		}
		return works
	}
}

// row returns a delivery as it is stored.
func (f *fakeOutbox) row(seq int64, target string) fakeRow {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *f.byRow[row{seq, target}]
}

// called returns how often an operation was called.
func (f *fakeOutbox) called(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// written returns how many marks were written.
func (f *fakeOutbox) written() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.marks
}

// rowsRead returns how many rows Pending returned.
func (f *fakeOutbox) rowsRead() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads
}

// last is the newest event.
func (f *fakeOutbox) last() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seq
}

// change alters a delivery as it is stored.
func (f *fakeOutbox) change(seq int64, target string, alter func(*fakeRow)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	alter(f.byRow[row{seq, target}])
}

// waiting lists the rows that wait.
func (f *fakeOutbox) waiting() []fakeRow {
	f.mu.Lock()
	defer f.mu.Unlock()
	var rows []fakeRow
	for _, r := range f.byRow {
		if r.state == Pending {
			rows = append(rows, *r)
		}
	}
	return rows
}

// count returns how many deliveries of a target are in a state.
func (f *fakeOutbox) count(target string, s State) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for r, x := range f.byRow {
		if r.target == target && x.state == s {
			n++
		}
	}
	return n
}

// replay makes deliveries wait again, as a person does.
func (f *fakeOutbox) replay(seqs ...int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for r, x := range f.byRow {
		if slices.Contains(seqs, r.seq) {
			x.state, x.Attempts, x.NextAttempt, x.Replay = Pending, 0, time.Now(), true
		}
	}
}

// fakeSink is a target whose answers a test decides.
type fakeSink struct {
	answer func(ctx context.Context, d Delivery) Result // nil = taken
	// answerBatch is the answer to a batch; nil = that to its first.
	answerBatch func(ctx context.Context, all []Delivery) Result

	mu       sync.Mutex
	attempts []Delivery // every call, when it begins
	batches  [][]Delivery
	taken    []string // event ids, in the order in which they were taken
	now, max int      // calls that run
}

func (s *fakeSink) Deliver(ctx context.Context, d Delivery) Result {
	s.mu.Lock()
	s.attempts = append(s.attempts, d)
	s.now++
	s.max = max(s.max, s.now)
	s.mu.Unlock()
	r := Result{Outcome: Taken}
	if s.answer != nil {
		r = s.answer(ctx, d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	if r.Outcome == Taken {
		s.taken = append(s.taken, d.EventID)
	}
	return r
}

// DeliverBatch makes it a Batcher: one answer for all.
func (s *fakeSink) DeliverBatch(ctx context.Context, all []Delivery) Result {
	s.mu.Lock()
	s.attempts = append(s.attempts, all...)
	s.batches = append(s.batches, all)
	s.now++
	s.max = max(s.max, s.now)
	s.mu.Unlock()
	r := Result{Outcome: Taken}
	switch {
	case s.answerBatch != nil:
		r = s.answerBatch(ctx, all)
	case s.answer != nil:
		r = s.answer(ctx, all[0])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	if r.Outcome == Taken {
		for _, d := range all {
			s.taken = append(s.taken, d.EventID)
		}
	}
	return r
}

// sent are the batches that came.
func (s *fakeSink) sent() [][]Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.batches)
}

// sizes are the sizes of the batches that came.
func (s *fakeSink) sizes() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []int
	for _, b := range s.batches {
		all = append(all, len(b))
	}
	return all
}

func (s *fakeSink) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.taken)
}

// most returns how many calls ran at the same time.
func (s *fakeSink) most() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.max
}

func (s *fakeSink) tries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.attempts)
}

// evt names events as the outbox does.
func evt(seqs ...int64) []string {
	var ids []string
	for _, s := range seqs {
		ids = append(ids, fmt.Sprintf("evt_%d", s))
	}
	return ids
}

// bench is a dispatcher that runs until the test ends.
type bench struct {
	*Dispatcher
	t    testing.TB
	box  *fakeOutbox
	stop context.CancelFunc
	done chan struct{}
}

// start runs a dispatcher over box. It is stopped with the test; a goroutine that
// it left behind would fail the bubble.
func start(t *testing.T, box Outbox, o Options, targets ...Target) *bench {
	t.Helper()
	d, err := New(box, targets, o)
	if err != nil {
		t.Fatalf("got %v, want a dispatcher", err)
	}
	return launch(t, d)
}

func launch(t testing.TB, d *Dispatcher) *bench {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b := &bench{Dispatcher: d, t: t, stop: cancel, done: make(chan struct{})}
	b.box, _ = d.outbox.(*fakeOutbox)
	go func() {
		defer close(b.done)
		if err := d.Run(ctx); err != nil {
			t.Errorf("got %v, want a clean end", err)
		}
	}()
	t.Cleanup(b.end)
	return b
}

// end stops the dispatcher and waits for it.
func (b *bench) end() {
	b.stop()
	<-b.done
}

// hold grants and holds a lease.
func (b *bench) hold(lease string) channel.Term {
	t := b.box.grant(lease)
	b.Hold(t)
	return t
}

// set gives the running dispatcher other targets, and says what became of each.
func (b *bench) set(targets ...Target) (added, changed, removed []string) {
	b.t.Helper()
	c, err := b.Prepare(Settings{Targets: targets})
	if err != nil {
		b.t.Fatalf("got %v, want the targets taken", err)
	}
	return c.Apply()
}

// entries returns how many entries are in memory.
func (b *bench) entries() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.items
}

// term returns the present grant of a lease.
func (f *fakeOutbox) term(lease string) channel.Term {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leases[lease]
}

// same fails the test unless got is want.
func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func sameList[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func unmarshal(b []byte, v any) error { return json.Unmarshal(b, v) }

// logbook keeps log records as their JSON.
type logbook struct {
	mu    sync.Mutex
	lines []map[string]any
}

func (l *logbook) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (l *logbook) Write(b []byte) (int, error) {
	var line map[string]any
	if err := json.Unmarshal(b, &line); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return len(b), nil
}

// find returns the records of a message.
func (l *logbook) find(msg string) []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []map[string]any
	for _, line := range l.lines {
		if line["msg"] == msg {
			found = append(found, line)
		}
	}
	return found
}
