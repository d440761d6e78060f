package channeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"leasehold/channel"
)

// Dial is how a Bench reaches its platform: Net.DialContext or a net.Dialer's.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Bench is the backend of one term's Link, for tests of a type alone: it keeps
// what the channel says, breaks what it is told to break, and enforces nothing
// else. The engine's own backend is tested by Run. It is safe for concurrent use.
type Bench struct {
	Memory *Memory
	// Answers is what Ask answers; nil = nothing. Set before Start.
	Answers func(ctx context.Context, e channel.Event) (json.RawMessage, bool)

	dial   Dial
	logs   logBuffer
	log    *slog.Logger
	killed chan struct{}
	wg     sync.WaitGroup // goroutines of the term
	done   chan struct{}  // Run has returned and all of them

	mu      sync.Mutex // guards what follows
	cancel  context.CancelCauseFunc
	err     error
	panics  []string
	ready   []channel.Info
	alive   int
	lastAt  time.Time // of Alive
	notices []Notice
	spent   int
	onKill  []func()
	conns   []net.Conn
	clients []*http.Client
	dead    bool
}

// Notice is what a channel told people.
type Notice struct{ Code, Words string }

var _ channel.Backend = (*Bench)(nil)

// NewBench makes the backend of one term over a store. A nil memory is a new one.
func NewBench(dial Dial, memory *Memory) *Bench {
	if memory == nil {
		memory = NewMemory()
	}
	b := &Bench{Memory: memory, dial: dial, killed: make(chan struct{}), done: make(chan struct{})}
	b.log = slog.New(slog.NewJSONHandler(&b.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return b
}

// Start runs ch until ctx, Stop or Kill ends it. It is called once.
func (b *Bench) Start(ctx context.Context, ch channel.Channel) {
	ctx, cancel := context.WithCancelCause(ctx)
	b.mu.Lock()
	b.cancel = cancel
	b.mu.Unlock()
	link := channel.NewLink(b)
	b.Go(func() {
		err := ch.Run(ctx, link)
		b.mu.Lock()
		b.err = err
		b.mu.Unlock()
	})
	go func() {
		b.wg.Wait()
		cancel(nil)
		b.mu.Lock()
		clients := b.clients
		b.mu.Unlock()
		for _, c := range clients {
			c.CloseIdleConnections()
		}
		close(b.done)
	}()
}

// Stop ends the term with a cause and waits for it.
func (b *Bench) Stop(cause error) error {
	b.mu.Lock()
	cancel := b.cancel
	b.mu.Unlock()
	cancel(cause)
	return b.Wait()
}

// Wait waits until the term has ended, with all of its goroutines, and returns
// what Run returned, or its panic.
func (b *Bench) Wait() error {
	<-b.done
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.panics) > 0 {
		return errors.New(b.panics[0])
	}
	return b.err
}

// Done is closed when the term has ended.
func (b *Bench) Done() <-chan struct{} { return b.done }

// Kill closes the term's sockets under it, as the engine does.
func (b *Bench) Kill() {
	b.mu.Lock()
	if b.dead {
		b.mu.Unlock()
		return
	}
	b.dead = true
	close(b.killed)
	conns, onKill := b.conns, b.onKill
	b.mu.Unlock()
	for _, c := range conns {
		if l, ok := c.(interface{ SetLinger(int) error }); ok {
			_ = l.SetLinger(0)
		}
		_ = c.Close()
	}
	for _, f := range onKill {
		f()
	}
	b.cancel(channel.ErrFenced)
}

// Log is the term's logger; its lines are kept, see Logged.
func (b *Bench) Log() *slog.Logger { return b.log }

// Logged is every line logged so far, as JSON.
func (b *Bench) Logged() string { return b.logs.String() }

// Said is everything that left the channel beside its events: logs, notices and
// its error. No secret may be in it.
func (b *Bench) Said() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("%s\n%+v\n%+v\n%v", b.logs.String(), b.notices, b.ready, b.err)
}

// Readies are the calls of Ready.
func (b *Bench) Readies() []channel.Info {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ready)
}

// Alives counts the proofs of life; at is when the last one came.
func (b *Bench) Alives() (n int, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.alive, b.lastAt
}

// Notices are the calls of Notice.
func (b *Bench) Notices() []Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.notices)
}

// Installation is "bench".
func (b *Bench) Installation() string { return "bench" }

// Riders are none.
func (b *Bench) Riders() []channel.Rider { return nil }

// Cursor is the memory's.
func (b *Bench) Cursor() []byte { return b.Memory.Cursor() }

// Accept commits to the memory; after the kill it is fenced.
func (b *Bench) Accept(_ context.Context, batch channel.Batch) error {
	select {
	case <-b.killed:
		return channel.ErrFenced
	default:
		return b.Memory.accept(batch, b.killed)
	}
}

// Ask has no program behind it, but what a test puts there.
func (b *Bench) Ask(ctx context.Context, e channel.Event) (json.RawMessage, bool) {
	if b.Answers == nil {
		return nil, false
	}
	return b.Answers(ctx, e)
}

// Ready records.
func (b *Bench) Ready(i channel.Info) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = append(b.ready, i)
}

// Alive records.
func (b *Bench) Alive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.alive++
	b.lastAt = time.Now()
}

// Notice records.
func (b *Bench) Notice(code, words string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notices = append(b.notices, Notice{code, words})
}

// Spend counts.
func (b *Bench) Spend(_ context.Context, n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent += n
	return nil
}

// Go runs f in a goroutine that the term waits for.
func (b *Bench) Go(f func()) { b.wg.Go(func() { b.Guard(f) }) }

// Guard runs f and keeps its panic as the term's error.
func (b *Bench) Guard(f func()) {
	defer func() {
		if v := recover(); v != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.panics = append(b.panics, fmt.Sprintf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	f()
}

// OnKill registers f.
func (b *Bench) OnKill(f func()) {
	b.mu.Lock()
	if !b.dead {
		defer b.mu.Unlock()
		b.onKill = append(b.onKill, f)
		return
	}
	b.mu.Unlock()
	f()
}

// Successor grants a slot at once.
func (b *Bench) Successor(context.Context) error { return nil }

// logBuffer is a bytes.Buffer for concurrent use.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
