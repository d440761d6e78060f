package sse_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/sse"
	"leasehold/channel/sse/ssefake"
)

func TestADayOfCommentsAndNoEventsEndsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		every   time.Duration
		latency time.Duration
		dead    string
		how     ssefake.Behaviour
	}{
		"as the standard advises": {},
		"rare comments":           {every: 80 * time.Second},
		"a slow line":             {latency: 2 * time.Second},
		"none, by config":         {how: ssefake.Behaviour{NoComments: true}, dead: "30h"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, ssefake.Options{CommentEvery: c.every}, func(w *world) {
				w.Net.Latency(c.latency)
				w.fake.Behave(bot, c.how)
				if c.dead != "" {
					w.Config["dead_after"] = c.dead
				}
				b := w.start()
				time.Sleep(24 * time.Hour)
				if n := len(w.fake.Connections(bot)); n != 1 || w.fake.Live(bot) != 1 || len(b.Readies()) != 1 {
					t.Errorf("got %d connections, %d live, %d readies after a day, want one of each", n, w.fake.Live(bot), len(b.Readies()))
				}
				if len(w.Kept()) != 0 || w.Memory.Batches() != 0 {
					t.Errorf("got %q in %d commits from silence, want none", w.Kept(), w.Memory.Batches())
				}
				if n, at := b.Alives(); !c.how.NoComments && (n == 0 || time.Since(at) > 2*time.Minute) {
					t.Errorf("got %d proofs of life, the last %s ago, want them to go on", n, time.Since(at))
				}
				w.Stop(b, channel.ErrDraining)
				w.NoViolations()
			})
		})
	}
}

func TestAMuteConnectionIsNoticed(t *testing.T) {
	for name, mute := range map[string]func(w *world){
		"the line is dead":                 func(w *world) { w.Net.Pause() },
		"a NAT forgot it":                  func(w *world) { w.Net.BlackholeExisting() },
		"the server hangs":                 func(w *world) { w.fake.Silence(bot) },
		"half an event, and then no more":  func(w *world) { w.fake.Say(bot, "id: 1\ndata: half"); w.fake.Silence(bot) },
		"it is dead while events are kept": func(w *world) { w.fake.Push(bot, 3); w.Net.Pause() },
	} {
		for _, after := range []time.Duration{0, time.Second, time.Hour} {
			t.Run(name+", "+after.String(), func(t *testing.T) {
				bubble(t, ssefake.Options{}, func(w *world) {
					b := w.connected()
					time.Sleep(after)
					mute(w)
					start := time.Now()
					got := w.WantExit(b, channel.Transient, "silent")
					if took := time.Since(start); took > sse.Spec.Deaf || took < sse.Spec.Deaf-15*time.Second {
						t.Errorf("got it noticed after %s, want within the stated %s and not earlier", took, sse.Spec.Deaf)
					}
					if !strings.Contains(got.Err.Error(), "nothing was heard for 1m30s") {
						t.Errorf("got %q, want to be told", got.Err)
					}
				})
			})
		}
	}
	t.Run("dead_after sets the bound", func(t *testing.T) {
		bubble(t, ssefake.Options{CommentEvery: time.Second}, func(w *world) {
			w.Config["dead_after"] = "5s"
			b := w.connected()
			time.Sleep(time.Hour)
			w.Net.Pause()
			start := time.Now()
			w.WantExit(b, channel.Transient, "silent")
			if took := time.Since(start); took > 5*time.Second || took < 4*time.Second {
				t.Errorf("got it noticed after %s, want within 5s", took)
			}
		})
	})
	t.Run("a large event on a slow line is alive", func(t *testing.T) {
		bubble(t, ssefake.Options{CommentEvery: time.Second}, func(w *world) {
			w.Config["dead_after"] = "5s"
			b := w.connected()
			w.fake.PushEvent(bot, ssefake.Event{ID: "big", Data: strings.Repeat("x", 1_000_000)})
			for range 20 { // 64 kB a second
				w.Net.Pause()
				time.Sleep(time.Second)
				w.Net.Resume()
				synctest.Wait()
				w.Net.Pause()
			}
			w.Net.Resume()
			synctest.Wait()
			if got := w.Kept(); len(got) != 1 {
				t.Errorf("got %q, want the large event", got)
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
}
