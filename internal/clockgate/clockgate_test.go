package clockgate

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// machine is one whose clocks a test sets.
type machine struct {
	wall     time.Time
	on       time.Duration
	unsynced bool
	battery  bool
}

func (m *machine) gate(built time.Time) *Gate {
	return New(Options{
		Built: built, Wall: func() time.Time { return m.wall },
		Up: func() (time.Duration, bool) { return m.on, true }, Unsynced: func() bool { return m.unsynced },
		Kept: func(time.Time) bool { return m.battery },
	})
}

// pass lets time pass on both clocks, as a Gate that runs sees it.
func (m *machine) pass(g *Gate, d time.Duration) {
	for d > 0 {
		step := min(d, lookEvery)
		m.wall, m.on, d = m.wall.Add(step), m.on+step, d-step
		g.Held()
	}
}

var (
	built = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	today = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
)

func TestHeld(t *testing.T) {
	for _, c := range []struct {
		name string
		m    machine
		want string // part of the reason; "" = it is believed
	}{
		{"a clock that is synchronised is believed at once", machine{wall: today, on: time.Second}, ""},
		{"a clock before the build is not, however long the machine is on", machine{wall: time.Unix(100, 0), on: 90 * 24 * time.Hour}, "before this program was built"},
		{"a clock before the build is not, though the kernel calls it right", machine{wall: built.Add(-time.Second), on: time.Hour}, "2026-10-31T23:59:59Z"},
		{"right after the start an unsynchronised one is not", machine{wall: today, on: 40 * time.Second, unsynced: true}, "started 40s ago"},
		{"one that a battery kept is", machine{wall: today, on: 40 * time.Second, unsynced: true, battery: true}, ""},
		{"one that a battery did not keep, before the build, is not", machine{wall: time.Unix(0, 0), on: 40 * time.Second, battery: true}, "before this program was built"},
		{"five minutes after the start it is", machine{wall: today, on: settleWithin, unsynced: true}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.m.gate(built).Held()
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}

	t.Run("a program that does not know when it was built believes every clock", func(t *testing.T) {
		m := machine{wall: time.Unix(0, 0), on: time.Hour}
		if got := m.gate(time.Time{}).Held(); got != "" {
			t.Errorf("got %q, want nothing", got)
		}
	})

	t.Run("it opens when the clock leaps ahead, and stays open when the kernel loses its server", func(t *testing.T) {
		m := machine{wall: time.Unix(30, 0), on: 30 * time.Second, unsynced: true}
		g := m.gate(built)
		m.wall, m.unsynced = today, false
		if got := g.Held(); got != "" {
			t.Errorf("after the leap: got %q, want nothing", got)
		}
		m.unsynced = true
		if got := g.Held(); got != "" {
			t.Errorf("after the server went: got %q, want nothing", got)
		}
	})

	t.Run("it closes again when the clock is set back before the build", func(t *testing.T) {
		m := machine{wall: today, on: time.Hour}
		g := m.gate(built)
		m.wall = time.Unix(0, 0)
		if got := g.Held(); got == "" {
			t.Error("got nothing, want a reason")
		}
	})

	t.Run("a system that does not say how long it is on holds for the build only", func(t *testing.T) {
		m := machine{wall: today}
		g := New(Options{
			Built: built, Wall: func() time.Time { return m.wall },
			Up: func() (time.Duration, bool) { return 0, false }, Unsynced: func() bool { return true },
		})
		if got := g.Held(); got != "" {
			t.Errorf("got %q, want nothing", got)
		}
		m.wall = time.Unix(0, 0)
		if got := g.Held(); got == "" {
			t.Error("in 1970: got nothing, want a reason")
		}
	})
}

func TestHeard(t *testing.T) {
	const week = 7 * 24 * time.Hour
	age := func(g *Gate, m *machine, at time.Time) time.Duration { return m.wall.Sub(g.Heard(at)) }

	t.Run("what was heard before a leap is as old as the time that passed", func(t *testing.T) {
		m := machine{wall: today.Add(-week), on: time.Minute, unsynced: true}
		g := m.gate(built)
		heard := m.wall
		m.pass(g, 10*time.Hour) // offline all day
		late := m.wall
		m.wall = m.wall.Add(week)
		if got := age(g, &m, heard); got != 10*time.Hour {
			t.Errorf("right after the leap: got %v, want 10h", got)
		}
		m.pass(g, time.Hour)
		for at, want := range map[time.Time]time.Duration{heard: 11 * time.Hour, late: time.Hour, m.wall: 0} {
			if got := age(g, &m, at); got != want {
				t.Errorf("heard %v: got an age of %v, want %v", at, got, want)
			}
		}
	})

	t.Run("what was heard before the machine was off keeps its age", func(t *testing.T) {
		m := machine{wall: today.Add(-week), on: time.Minute, unsynced: true}
		g := m.gate(built)
		before := m.wall.Add(-time.Hour) // by the last process, before the power went
		m.wall = m.wall.Add(week)
		if got := age(g, &m, before); got != week+time.Hour {
			t.Errorf("got %v, want a week and an hour", got)
		}
	})

	t.Run("what another process of the same start heard counts as heard before the leap", func(t *testing.T) {
		m := machine{wall: today.Add(-week), on: 4 * time.Minute, unsynced: true}
		g := m.gate(built)
		heard := m.wall.Add(-3 * time.Minute)
		m.wall = m.wall.Add(week)
		if got := age(g, &m, heard); got != 3*time.Minute {
			t.Errorf("got %v, want 3m", got)
		}
	})

	t.Run("two leaps add up", func(t *testing.T) {
		m := machine{wall: time.Unix(0, 0), on: time.Minute}
		g := m.gate(built)
		heard := m.wall
		m.pass(g, time.Minute)
		m.wall = today.Add(-week)
		m.pass(g, time.Minute)
		m.wall = m.wall.Add(week)
		if got := age(g, &m, heard); got != 2*time.Minute {
			t.Errorf("got %v, want 2m", got)
		}
	})

	t.Run("a machine that slept has not leapt", func(t *testing.T) {
		m := machine{wall: today, on: time.Hour}
		g := m.gate(built)
		heard := m.wall
		m.wall, m.on = m.wall.Add(48*time.Hour), m.on+48*time.Hour
		if got := age(g, &m, heard); got != 48*time.Hour {
			t.Errorf("got %v, want 48h", got)
		}
	})

	t.Run("a clock that is put right by some minutes, or set back, changes nothing", func(t *testing.T) {
		m := machine{wall: today, on: time.Hour}
		g := m.gate(built)
		heard := m.wall
		m.wall = m.wall.Add(leapOver - time.Second)
		if got := g.Heard(heard); !got.Equal(heard) {
			t.Errorf("ahead: got %v, want %v", got, heard)
		}
		m.wall = m.wall.Add(-time.Hour)
		if got := g.Heard(heard); !got.Equal(heard) {
			t.Errorf("back: got %v, want %v", got, heard)
		}
	})
}

func TestRun(t *testing.T) {
	t.Run("a held clock is told at once and once, and so is its release", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			var wall atomic.Int64 // what it showed at the start, in seconds
			g := New(Options{
				Built: built, Unsynced: func() bool { return false },
				Wall: func() time.Time { return time.Unix(wall.Load(), 0).Add(time.Since(start)) },
				Up:   func() (time.Duration, bool) { return time.Minute + time.Since(start), true },
			})
			told := make(chan bool, 10)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- g.Run(ctx, func(held string) { told <- held != "" }) }()
			synctest.Wait()
			if len(told) != 1 || !<-told {
				t.Errorf("at the start: got %d more words, want one, that it is held", len(told))
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			wall.Store(today.Unix())
			time.Sleep(lookEvery)
			synctest.Wait()
			if len(told) != 1 || <-told {
				t.Errorf("after the leap: got %d more words, want one, that it is released", len(told))
			}
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("got %v, want a clean end", err)
			}
		})
	})
}

// TestSystem asks this machine: whatever it answers, it must not fail or panic.
func TestSystem(t *testing.T) {
	g := New(Options{Built: built})
	if held := g.Held(); strings.Contains(held, "before this program") {
		t.Errorf("got %q, want a clock after the build", held)
	}
	if d, ok := up(); ok && d <= 0 {
		t.Errorf("the machine is on for %v, want some time", d)
	}
}
