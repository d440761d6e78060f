package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"leasehold/channel"
)

// term is one build, run and end of a channel: the backend of its Link.
type term struct {
	s   *Supervisor
	n   uint64
	row Installation
	t   channel.Term // Run is set by begin
	log *slog.Logger

	gate   gate
	socks  sockets
	ctx    context.Context //nolint:containedctx // Run's: the term lives as long as it
	cancel context.CancelCauseFunc
	dead   context.Context //nolint:containedctx // ends with the kill, for calls that outlive ctx
	die    context.CancelFunc
	goers  sync.WaitGroup
	turn   chan struct{} // a slot of the dial limiter for a successor

	accepts   acceptQueue
	identity  string
	budget    int
	started   time.Time
	readyOnce sync.Once
	ready     atomic.Bool
	alive     atomic.Int64 // Instant of the last proof of life
	sender    channel.Sender

	mu       sync.Mutex // guards what follows
	cursor   []byte     // as last committed
	panicked error
}

func newTerm(s *Supervisor, a actBegin) *term {
	t := &term{
		s: s, n: a.term, row: a.row, t: a.t, identity: a.row.Identity, started: time.Now(), turn: make(chan struct{}, 1),
		log:  s.log.With("installation", a.row.ID, "channel_type", a.row.Type),
		gate: gate{trust: &s.trust, boot: s.o.Clock.Boot},
	}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.dead, t.die = context.WithCancel(context.Background())
	t.accepts.commit = t.commit
	return t
}

// live is the whole life of the term. It reports down as soon as Run has
// returned and the sockets are closed, and returned when nothing of it runs.
func (t *term) live() {
	exit := t.run()
	t.flush()
	t.kill()
	t.cancel(context.Canceled)
	if t.ready.Load() {
		t.s.holder.Live(t.t, nil)
		t.log.Info("disconnected", "reason", exit.Code, "detail", exit.Err.Error(), "uptime_s", time.Since(t.started).Round(time.Second).Seconds())
	}
	t.s.mail.put(inDown{t.row.ID, t.n, exit})
	t.goers.Wait()
	t.s.forget(t.n)
	t.s.mail.put(inReturned{t.row.ID, t.n})
}

// run begins, builds and runs the channel, and classifies its end.
func (t *term) run() channel.Exit {
	run, cursor, err := t.s.begun(t.t, t.identity)
	if err != nil {
		return channel.Classify(err)
	}
	t.t.Run, t.cursor = run, cursor
	ch, err := t.build()
	if err != nil {
		return channel.Classify(err)
	}
	t.sender = t.lent(ch)
	t.log.Info("connecting")
	err = t.guarded("run", func() error { return ch.Run(t.ctx, channel.NewLink(t)) })
	if failed := t.failure(); failed != nil {
		err = failed
	}
	if err == nil {
		if cause := context.Cause(t.ctx); cause != nil {
			return asked(cause)
		}
		err = channel.Failed("returned", errors.New("the channel returned without being asked to"))
	}
	return channel.Classify(err)
}

// asked is the end of a term that was asked to end.
func asked(cause error) channel.Exit {
	exit := channel.Classify(cause)
	for code, err := range map[string]error{
		"draining": channel.ErrDraining, "replaced": channel.ErrReplaced, "removed": channel.ErrRemoved,
		"fenced": channel.ErrFenced, "store": channel.ErrParked, "slept": errSlept,
	} {
		if errors.Is(cause, err) {
			exit.Code = code
		}
	}
	return exit
}

// buildTimeout bounds the making of a channel, which makes no connection.
const buildTimeout = 10 * time.Second

func (t *term) build() (ch channel.Channel, err error) {
	ctx, cancel := context.WithTimeout(t.ctx, buildTimeout)
	defer cancel()
	err = t.guarded("build", func() error {
		if spec, ok := t.s.types.Lookup(t.row.Type); ok {
			t.budget = spec.Budget
		}
		cfg, err := t.s.types.Decode(t.row.Type, t.row.Config)
		if err != nil {
			return channel.Rejected("config", err)
		}
		ch, err = cfg.Build(ctx)
		var classified *channel.Exit
		if err != nil && !errors.As(err, &classified) {
			err = channel.Failed("build", err)
		}
		return err
	})
	if err == nil && ch == nil {
		err = channel.Failed("build", errors.New("the type built no channel"))
	}
	return ch, err
}

// guarded runs f; its panic is an error with a stack in the log.
func (t *term) guarded(where string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.log.Error("panic in a channel", "where", where, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = channel.Failed("panic", fmt.Errorf("panic in %s: %v", where, p))
		}
	}()
	return f()
}

func (t *term) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.panicked
}

// kill closes the gate and every socket, at once and for good.
func (t *term) kill() {
	t.gate.close()
	t.socks.kill()
	t.die()
}

// Go runs f in a goroutine that the term waits for.
func (t *term) Go(f func()) { t.goers.Go(func() { t.Guard(f) }) }

// Guard runs f; a panic in it ends the term.
func (t *term) Guard(f func()) {
	err := t.guarded("goroutine", func() error { f(); return nil })
	if err == nil {
		return
	}
	t.panickedWith(err)
}

// panickedWith ends the term with err.
func (t *term) panickedWith(err error) {
	t.mu.Lock()
	if t.panicked == nil {
		t.panicked = err
	}
	t.mu.Unlock()
	t.cancel(err)
	t.s.mail.put(inPanicked{t.row.ID, t.n, channel.Classify(err)})
}

func (t *term) OnKill(f func()) { t.socks.onKill(f) }

func (t *term) Installation() string { return t.row.ID }

func (t *term) Log() *slog.Logger { return t.log }

func (t *term) Cursor() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cursor
}

func (t *term) Riders() []channel.Rider {
	t.s.mu.Lock()
	rows := t.s.riders[t.row.ID]
	t.s.mu.Unlock()
	var riders []channel.Rider
	for _, r := range rows {
		cfg, err := t.s.types.Decode(r.Type, r.Config)
		if err != nil {
			t.log.Warn("blocked", "rider", r.ID, "reason", "config", "detail", err.Error())
			continue
		}
		riders = append(riders, channel.Rider{ID: r.ID, Config: cfg.Value()})
	}
	return riders
}

func (t *term) Ready(info channel.Info) {
	t.readyOnce.Do(func() {
		if t.gate.pass() != nil {
			return
		}
		t.ready.Store(true)
		t.Alive()
		t.s.noteReady(t.row.ID)
		t.s.holder.Live(t.t, t.sender)
		t.log.Info("connected", said(info, "took_ms", time.Since(t.started).Milliseconds())...)
		t.s.mail.put(inReady{t.row.ID, t.n})
	})
}

// said adds to attrs what the platform told of the connection; most tell nothing.
func said(info channel.Info, attrs ...any) []any {
	if info.Identity != "" {
		attrs = append(attrs, "identity", info.Identity)
	}
	if info.Connections > 0 {
		attrs = append(attrs, "connections", info.Connections)
	}
	return attrs
}

func (t *term) Alive() { t.alive.Store(int64(t.s.o.Clock.Boot())) }

func (t *term) Notice(code, words string) {
	t.log.Warn("notice", "code", code, "detail", words)
	t.s.o.Observer.Notice(t.row.ID, code, words)
}

func (t *term) Ask(ctx context.Context, e channel.Event) (json.RawMessage, bool) {
	if t.gate.pass() != nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	stop := context.AfterFunc(t.dead, cancel)
	defer stop()
	return t.s.holder.Ask(ctx, t.t, e)
}

// askWithin is how long a program may take to answer an interaction: platforms want
// an answer within three seconds, and it has a way to go.
const askWithin = 2500 * time.Millisecond

// budgetWindow is over what platforms count connects.
const budgetWindow = 24 * time.Hour

func (t *term) Spend(ctx context.Context, n int) error {
	if t.budget == 0 {
		return nil
	}
	if err := t.gate.pass(); err != nil {
		return err
	}
	start := t.s.o.Clock.Wall().UTC().Truncate(budgetWindow)
	used, ok, err := t.s.store.Spend(ctx, t.t, start, n, t.budget)
	switch {
	case err != nil:
		return fmt.Errorf("%w: count against the platform's daily limit: %w", channel.ErrStore, t.s.heard(err))
	case !ok:
		return channel.RateLimited(fmt.Errorf("%d of %d used today", used, t.budget), start.Add(budgetWindow).Sub(t.s.o.Clock.Wall()))
	default:
		return nil
	}
}

func (t *term) Successor(ctx context.Context) error {
	t.s.mail.put(inSuccessor{t.row.ID, t.n})
	select {
	case <-t.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

func (t *term) grantSuccessor() {
	select {
	case t.turn <- struct{}{}:
	default:
	}
}

// noteReady keeps when a link was last ready, for its status.
func (s *Supervisor) noteReady(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.links[id]; l != nil {
		l.lastReady = s.o.Clock.Wall().UTC()
	}
}

var _ channel.Backend = (*term)(nil)
