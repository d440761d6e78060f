package quiet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	after = 2 * time.Minute
	every = time.Minute
)

// paper is a Desk that runs, and what it told.
type paper struct {
	*Desk
	t     *testing.T
	began time.Time
	stop  func()

	mu    sync.Mutex // guards lines
	lines []string
}

func inBubble(t *testing.T, f func(p *paper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &paper{Desk: New(after, every), t: t, began: time.Now()}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		p.stop = sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("got %v, want a clean end", err)
			}
		})
		f(p)
		p.stop()
	})
}

func (p *paper) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

func (p *paper) bad(key string, grave bool, what string) {
	p.Trouble(key, grave, func(since time.Time) { p.line("%s %s since %v", key, what, since.Sub(p.began)) })
}

func (p *paper) well(key string) {
	p.Over(key, func(since time.Time) { p.line("%s well, was not since %v", key, since.Sub(p.began)) })
}

func (p *paper) expect(what string, want ...string) {
	p.t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.lines, want) {
		p.t.Errorf("%s: got %q, want %q", what, p.lines, want)
	}
	p.lines = nil
}

func TestTrouble(t *testing.T) {
	t.Run("one that passes soon is not told, however often it comes", func(t *testing.T) {
		inBubble(t, func(p *paper) {
			for range 50 {
				p.bad("a", false, "down")
				time.Sleep(after - time.Second)
				p.well("a")
				time.Sleep(time.Second)
			}
			p.expect("flaps")
		})
	})

	t.Run("one that lasts is told once, in its latest words, and so is its end", func(t *testing.T) {
		inBubble(t, func(p *paper) {
			time.Sleep(time.Second)
			p.bad("a", false, "connecting")
			time.Sleep(after - time.Second)
			p.bad("a", false, "down")
			p.expect("just before")
			time.Sleep(time.Second)
			p.expect("once it has lasted", "a down since 1s")
			p.bad("a", false, "connecting")
			time.Sleep(time.Hour)
			p.expect("while it lasts on")
			p.well("a")
			p.expect("its end", "a well, was not since 1s")
			p.well("a")
			time.Sleep(time.Hour)
			p.expect("afterwards")
		})
	})

	t.Run("a grave one is told at once, also after one that was not", func(t *testing.T) {
		inBubble(t, func(p *paper) {
			p.bad("a", true, "blocked")
			p.expect("at once", "a blocked since 0s")
			time.Sleep(after)
			p.expect("once it has lasted")
			p.bad("b", false, "down")
			time.Sleep(after)
			p.expect("b once it has lasted", "b down since 2m0s")
			p.bad("b", true, "blocked")
			p.expect("b again", "b blocked since 2m0s")
			p.bad("b", true, "blocked again")
			p.bad("b", false, "down again")
			time.Sleep(after)
			p.expect("b, no third time")
		})
	})

	t.Run("many that begin together are told in their order", func(t *testing.T) {
		inBubble(t, func(p *paper) {
			var want []string
			for i := range 1000 {
				p.bad(fmt.Sprint(i), false, "down")
				want = append(want, fmt.Sprintf("%d down since 0s", i))
			}
			time.Sleep(after)
			p.expect("all", want...)
		})
	})

	t.Run("what is well is not kept", func(t *testing.T) {
		inBubble(t, func(p *paper) {
			for i := range 1000 {
				p.bad(fmt.Sprint(i), false, "down")
				p.well(fmt.Sprint(i))
			}
			time.Sleep(after)
			synctest.Wait()
			if n := len(p.troubles) + len(p.lasting) + len(p.news); n != 0 {
				t.Errorf("got %d things kept, want none", n)
			}
		})
	})
}

func TestRepeat(t *testing.T) {
	inBubble(t, func(p *paper) {
		count := func(key, what string) { p.Repeat(key, func(n int) { p.line("%d %s %s", n, key, what) }) }
		count("a", "first")
		p.expect("the first, at once", "1 a first")
		for i := range 10 {
			count("a", fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		count("b", "other")
		p.expect("another, at once", "1 b other")
		time.Sleep(every)
		p.expect("the rest of the minute, once", "10 a 9")
		count("a", "late")
		time.Sleep(every)
		p.expect("and after the next", "1 a late")
		time.Sleep(2 * every)
		synctest.Wait()
		if n := len(p.repeats); n != 0 {
			t.Errorf("got %d repeats kept, want none", n)
		}
		count("a", "new")
		p.expect("a new one, at once", "1 a new")
	})
}

func TestStop(t *testing.T) {
	t.Run("what is news by the end is told, what has not lasted is not", func(t *testing.T) {
		inBubble(t, func(p *paper) {
			p.bad("a", false, "down")
			p.bad("b", true, "blocked")
			p.stop()
			p.expect("at the end", "b blocked since 0s")
		})
	})
}
