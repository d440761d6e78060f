package channel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/channeltest"
)

// run is a Channel made of a function.
type run func(ctx context.Context, link *channel.Link) error

func (r run) Run(ctx context.Context, link *channel.Link) error { return r(ctx, link) }

// acks records what was acknowledged, and whether it was durable by then.
type acks struct {
	memory *channeltest.Memory
	mu     sync.Mutex // guards what follows
	ids    []string
	early  []string
}

func (a *acks) of(id string) func() error {
	return func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.ids = append(a.ids, id)
		if !a.memory.Has(id) {
			a.early = append(a.early, id)
		}
		return nil
	}
}

func (a *acks) list() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.ids)
}

func event(id string) *channel.Event { return &channel.Event{ID: id, Type: "message"} }

func ids(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("e%03d", i)
	}
	return all
}

// bubble runs f as the channel of a term inside a synctest bubble.
func bubble(t *testing.T, f func(t *testing.T, b *channeltest.Bench, a *acks, link *channel.Link)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := channeltest.NewMemory()
		b := channeltest.NewBench(channeltest.NewNet().DialContext, m)
		a := &acks{memory: m}
		b.Start(t.Context(), run(func(_ context.Context, link *channel.Link) error {
			f(t, b, a, link)
			return nil
		}))
		if err := b.Wait(); err != nil {
			t.Error(err)
		}
		if len(a.early) > 0 {
			t.Errorf("got %q acknowledged before they were durable, want none", a.early)
		}
	})
}

func push(t *testing.T, in *channel.Inbox, a *acks, id string) {
	t.Helper()
	if err := in.Push(event(id), []byte(id), a.of(id)); err != nil {
		t.Errorf("push %s: %v", id, err)
	}
}

func TestInbox(t *testing.T) {
	t.Run("it commits what waits in one batch and acknowledges in order", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *channeltest.Bench, a *acks, link *channel.Link) {
			in := link.Inbox(1000)
			release := b.Memory.Hold()
			push(t, in, a, "first") // taken at once, and held
			synctest.Wait()
			want := ids(600)
			for _, id := range want {
				push(t, in, a, id)
			}
			release()
			if err := in.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if got := a.list(); !slices.Equal(got, append([]string{"first"}, want...)) {
				t.Errorf("got %d acknowledgements, want 601 in the order of the pushes", len(got))
			}
			if got := b.Memory.Batches(); got != 4 { // 1 + 256 + 256 + 88
				t.Errorf("got %d commits, want 4", got)
			}
			if got := string(b.Memory.Cursor()); got != "e599" {
				t.Errorf("got cursor %q, want the last one", got)
			}
		})
	})
	t.Run("the reader waits once depth events wait, and no sooner", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *channeltest.Bench, a *acks, link *channel.Link) {
			in := link.Inbox(3)
			release := b.Memory.Hold()
			start := time.Now()
			for _, id := range ids(4) { // one is held in its commit, three wait
				push(t, in, a, id)
				synctest.Wait()
			}
			if got := time.Since(start); got != 0 {
				t.Errorf("got a reader that waited %s for the disk, want none", got)
			}
			time.AfterFunc(time.Minute, release)
			push(t, in, a, "fifth")
			if got := time.Since(start); got != time.Minute {
				t.Errorf("got %s, want the reader to wait for the disk", got)
			}
			_ = in.Close()
		})
	})
	t.Run("a failed commit ends it and acknowledges nothing", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *channeltest.Bench, a *acks, link *channel.Link) {
			in := link.Inbox(10)
			push(t, in, a, "kept")
			synctest.Wait()
			b.Memory.Fail(fmt.Errorf("disk full: %w", channel.ErrStore), false)
			push(t, in, a, "lost")
			<-in.Done()
			if err := in.Push(event("late"), nil, a.of("late")); !errors.Is(err, channel.ErrStore) {
				t.Errorf("got %v from a later push, want what ended the inbox", err)
			}
			if err := in.Close(); !errors.Is(err, channel.ErrStore) {
				t.Errorf("got %v from close, want what ended the inbox", err)
			}
			if got := a.list(); !slices.Equal(got, []string{"kept"}) {
				t.Errorf("got %q acknowledged, want only what was durable", got)
			}
		})
	})
	t.Run("a commit whose answer is lost acknowledges nothing", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *channeltest.Bench, a *acks, link *channel.Link) {
			b.Memory.Fail(channel.ErrStore, true)
			in := link.Inbox(10)
			push(t, in, a, "persisted")
			if err := in.Close(); !errors.Is(err, channel.ErrStore) {
				t.Errorf("got %v, want the failure", err)
			}
			if got := a.list(); len(got) != 0 || !b.Memory.Has("persisted") {
				t.Errorf("got %q acknowledged, want none though it is kept", got)
			}
		})
	})
	t.Run("what is too large is acknowledged with the rest", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := channeltest.NewMemory()
			m.Limit(3)
			b, a := channeltest.NewBench(nil, m), &acks{memory: m}
			b.Start(t.Context(), run(func(_ context.Context, link *channel.Link) error {
				in := link.Inbox(10)
				for _, e := range []channel.Event{{ID: "small"}, {ID: "large", Text: "four"}, {ID: "after"}} {
					if err := in.Push(&e, nil, a.of(e.ID)); err != nil {
						return err
					}
				}
				return in.Close()
			}))
			if err := b.Wait(); err != nil {
				t.Error(err)
			}
			if got := a.list(); !slices.Equal(got, []string{"small", "large", "after"}) {
				t.Errorf("got %q acknowledged, want all three", got)
			}
			if len(m.Events()) != 2 || m.Has("large") {
				t.Errorf("got %d events kept, want the two small ones", len(m.Events()))
			}
		})
	})
	t.Run("a failed acknowledgement ends it", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *channeltest.Bench, a *acks, link *channel.Link) {
			broken := errors.New("broken pipe")
			in := link.Inbox(10)
			release := b.Memory.Hold()
			push(t, in, a, "first")
			_ = in.Push(event("second"), nil, func() error { return broken })
			push(t, in, a, "third")
			release()
			if err := in.Close(); !errors.Is(err, broken) {
				t.Errorf("got %v, want the failure", err)
			}
			if got := a.list(); slices.Contains(got, "third") {
				t.Errorf("got %q acknowledged, want nothing after the failure", got)
			}
		})
	})
	t.Run("the kill ends it while the disk hangs", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *channeltest.Bench, a *acks, link *channel.Link) {
			in := link.Inbox(1)
			b.Memory.Hold()
			push(t, in, a, "held")
			synctest.Wait()
			push(t, in, a, "waits")
			blocked := make(chan error)
			link.Go(func() { blocked <- in.Push(event("blocked"), nil, nil) })
			synctest.Wait()
			b.Kill()
			if err := <-blocked; err == nil {
				t.Error("got no error from a push that waited for the disk, want one")
			}
			if err := in.Close(); err == nil {
				t.Error("got no error from close, want one")
			}
			if got := a.list(); len(got) != 0 {
				t.Errorf("got %q acknowledged after the kill, want none", got)
			}
		})
	})
	t.Run("the kill ends an idle one", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *channeltest.Bench, _ *acks, link *channel.Link) {
			in := link.Inbox(1)
			b.Kill()
			<-in.Done()
			if err := in.Close(); !errors.Is(err, channel.ErrKilled) {
				t.Errorf("got %v, want ErrKilled", err)
			}
		})
	})
	t.Run("a push without an event moves the cursor and is acknowledged in its place", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *channeltest.Bench, a *acks, link *channel.Link) {
			in := link.Inbox(10)
			var order []string
			note := func(s string) func() error { return func() error { order = append(order, s); return nil } }
			_ = in.Push(event("a"), []byte("1"), note("a"))
			_ = in.Push(nil, []byte("2"), note("b"))
			_ = in.Push(event("c"), nil, note("c"))
			if err := in.Close(); err != nil {
				t.Error(err)
			}
			if got := string(b.Memory.Cursor()); got != "2" || len(b.Memory.Events()) != 2 {
				t.Errorf("got cursor %q and %d events, want 2 and two", got, len(b.Memory.Events()))
			}
			if !slices.Equal(order, []string{"a", "b", "c"}) {
				t.Errorf("got %q, want the order of the pushes", order)
			}
		})
	})
	t.Run("a push after close is refused, and close may be called again", func(t *testing.T) {
		bubble(t, func(t *testing.T, _ *channeltest.Bench, a *acks, link *channel.Link) {
			in := link.Inbox(10)
			_, _ = in.Close(), in.Close()
			if err := in.Push(event("late"), nil, a.of("late")); err == nil {
				t.Error("got no error, want one")
			}
		})
	})
	t.Run("a panic in an acknowledgement ends it, so that nobody waits for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := channeltest.NewBench(nil, nil)
			b.Start(t.Context(), run(func(_ context.Context, link *channel.Link) error {
				in := link.Inbox(1)
				if err := in.Push(event("a"), nil, func() error { panic("boom") }); err != nil {
					return err
				}
				<-in.Done()
				if err := in.Close(); err == nil {
					t.Error("got no error from close, want one")
				}
				return nil
			}))
			if err := b.Wait(); err == nil || !strings.Contains(err.Error(), "boom") {
				t.Errorf("got %v, want the panic as the term's end", err)
			}
		})
	})
	t.Run("it begins again after a rest", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *channeltest.Bench, a *acks, link *channel.Link) {
			in := link.Inbox(4)
			for _, id := range ids(20) {
				push(t, in, a, id)
				time.Sleep(time.Hour)
			}
			if got := b.Memory.Batches(); got != 20 || len(a.list()) != 20 {
				t.Errorf("got %d commits and %d acknowledgements, want 20", got, len(a.list()))
			}
			if err := in.Close(); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("a push that waits for room is refused by close", func(t *testing.T) {
		bubble(t, func(t *testing.T, b *channeltest.Bench, a *acks, link *channel.Link) {
			in := link.Inbox(1)
			release := b.Memory.Hold()
			push(t, in, a, "held")
			synctest.Wait()
			push(t, in, a, "waits")
			refused := make(chan error)
			link.Go(func() { refused <- in.Push(event("third"), nil, a.of("third")) })
			synctest.Wait()
			time.AfterFunc(time.Second, release)
			closed := make(chan error)
			link.Go(func() { closed <- in.Close() })
			if err := <-refused; err == nil {
				t.Error("got no error from the push, want one")
			}
			if err := <-closed; err != nil || !slices.Equal(a.list(), []string{"held", "waits"}) {
				t.Errorf("got %v and %q acknowledged, want the two that were taken", err, a.list())
			}
		})
	})
	t.Run("pushes, close and kill may race", func(t *testing.T) {
		for range 200 {
			bubble(t, func(_ *testing.T, b *channeltest.Bench, a *acks, link *channel.Link) {
				in := link.Inbox(2)
				for i := range 4 {
					link.Go(func() {
						for j := range 10 {
							if in.Push(event(fmt.Sprint(i, ".", j)), nil, nil) != nil {
								return
							}
						}
					})
				}
				link.Go(b.Kill)
				_ = in.Close()
			})
		}
	})
}
