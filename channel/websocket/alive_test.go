package websocket_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/websocket"
	"leasehold/channel/websocket/websocketfake"
)

func TestADayOfPongsAndNoEventsEndsNothing(t *testing.T) {
	for name, o := range map[string]struct {
		how    websocketfake.Behaviour
		fake   websocketfake.Options
		config map[string]any
	}{
		"answered pings":         {},
		"pings of the platform":  {how: websocketfake.Behaviour{NoPong: true}, fake: websocketfake.Options{PingEvery: 30 * time.Second}},
		"the platform's own":     {how: websocketfake.Behaviour{NoPong: true}, config: map[string]any{"ws_ping": false, "ping": `{"type":"ping"}`}},
		"rare pings, by config":  {config: map[string]any{"ping_every": "10m"}},
		"pings off, by config":   {fake: websocketfake.Options{PingEvery: time.Hour}, config: map[string]any{"ws_ping": false, "dead_after": "2h"}},
		"a slow line":            {config: map[string]any{}},
		"frames that are no use": {how: websocketfake.Behaviour{NoPong: true}, config: map[string]any{"ws_ping": false, "ping": `{"type":"ping"}`, "ping_every": "15s"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, o.fake, func(w *world) {
				maps.Copy(w.Config, o.config)
				w.fake.Behave(bot, o.how)
				if name == "a slow line" {
					w.Net.Latency(2 * time.Second)
				}
				b := w.start()
				time.Sleep(24 * time.Hour)
				if n := len(w.fake.Connections(bot)); n != 1 || w.fake.Live(bot) != 1 || len(b.Readies()) != 1 {
					t.Errorf("got %d connections, %d live, %d readies after a day, want one of each", n, w.fake.Live(bot), len(b.Readies()))
				}
				if len(w.Kept()) != 0 {
					t.Errorf("got events %q from silence, want none", w.Kept())
				}
				if n, at := b.Alives(); n == 0 || time.Since(at) > 2*time.Hour {
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
		"the line is dead":                  func(w *world) { w.Net.Pause() },
		"a NAT forgot it":                   func(w *world) { w.Net.BlackholeExisting() },
		"the platform hangs":                func(w *world) { w.fake.Silence(bot) },
		"half a frame, and then no more":    func(w *world) { w.fake.Raw(bot, websocketfake.HalfFrame()) },
		"it is dead while events are acked": func(w *world) { w.fake.Push(bot, 3); w.Net.Pause() },
	} {
		for _, after := range []time.Duration{0, time.Second, time.Hour} {
			t.Run(name+", "+after.String(), func(t *testing.T) {
				bubble(t, websocketfake.Options{}, func(w *world) {
					b := w.connected()
					time.Sleep(after)
					mute(w)
					start := time.Now()
					got := w.WantExit(b, channel.Transient, "silent")
					if took := time.Since(start); took > websocket.Spec.Deaf || took < 25*time.Second {
						t.Errorf("got it noticed after %s, want within the stated %s and not before two pings were lost", took, websocket.Spec.Deaf)
					}
					if !strings.Contains(got.Err.Error(), "nothing was heard for 50s") {
						t.Errorf("got %q, want to be told", got.Err)
					}
				})
			})
		}
	}
	t.Run("dead_after sets the bound", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.Config["ping_every"], w.Config["dead_after"] = "2s", "5s"
			b := w.connected()
			time.Sleep(time.Hour)
			w.Net.Pause()
			start := time.Now()
			w.WantExit(b, channel.Transient, "silent")
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("got it noticed after %s, want within 5s", took)
			}
		})
	})
	t.Run("a large message on a slow line is alive", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.Config["ping_every"], w.Config["dead_after"] = "2s", "5s"
			b := w.connected()
			// 64 kB a second: the message takes 15 s, and no pong fits in between.
			w.fake.PushFrame(bot, "big", []byte(`{"id":"big","text":"`+strings.Repeat("x", 1_000_000)+`"}`))
			for range 20 {
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

func TestPingsAreSentAsConfigured(t *testing.T) {
	pings := func(w *world) int { return w.lastConnection().Pings }
	t.Run("every 20 s, give or take", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			b := w.connected()
			time.Sleep(time.Hour)
			if got := pings(w); got < 160 || got > 200 {
				t.Errorf("got %d pings in an hour, want about 180", got)
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
	t.Run("none where they are off", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.Config["ws_ping"], w.Config["ping"] = false, `{"type":"ping"}`
			b := w.connected()
			time.Sleep(time.Hour)
			if got := pings(w); got != 0 {
				t.Errorf("got %d pings, want none", got)
			}
			w.Stop(b, channel.ErrDraining)
			w.NoViolations()
		})
	})
	t.Run("not by many connections together", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			seen := map[time.Duration]int{}
			start := time.Now()
			for range 50 {
				b := w.start()
				defer func() { _ = b.Stop(channel.ErrDraining) }()
			}
			synctest.Wait()
			time.Sleep(time.Second)
			for range 60 {
				before := total(w)
				time.Sleep(time.Second)
				seen[time.Since(start)] = total(w) - before
			}
			for at, n := range seen {
				if n > 15 { // 50 connections, 20 s: 2.5 a second
					t.Errorf("got %d pings in one second at %s, want them spread", n, at)
				}
			}
		})
	})
}

func total(w *world) int {
	n := 0
	for _, c := range w.fake.Connections(bot) {
		n += c.Pings
	}
	return n
}

func TestReady(t *testing.T) {
	for _, c := range []struct {
		name   string
		how    websocketfake.Behaviour
		config map[string]any
		want   int
	}{
		{"the hello that ready_when names", websocketfake.Behaviour{}, nil, 1},
		{"an answered ping is not enough where ready_when is set", websocketfake.Behaviour{NoHello: true}, nil, 0},
		{"an answered ping, without ready_when", websocketfake.Behaviour{NoHello: true}, map[string]any{"ready_when": map[string]any{}}, 1},
		{"any frame, without ready_when", websocketfake.Behaviour{NoPong: true}, map[string]any{"ready_when": map[string]any{}}, 1},
		{"an upgrade alone is not enough", websocketfake.Behaviour{NoHello: true, NoPong: true}, map[string]any{"ready_when": map[string]any{}}, 0},
		{"the answer to its own ping, where that is all", websocketfake.Behaviour{NoHello: true}, map[string]any{"ready_when": map[string]any{}, "ws_ping": false, "ping": `{"type":"ping"}`}, 1},
		{"plain text as a whole", websocketfake.Behaviour{}, map[string]any{"ready_when": map[string]any{"equals": `{"type":"hello","bot":"a"}`}}, 1},
		{"a pointer that need only exist", websocketfake.Behaviour{}, map[string]any{"ready_when": map[string]any{"pointer": "/bot"}}, 1},
		{"a pointer that finds something else", websocketfake.Behaviour{}, map[string]any{"ready_when": map[string]any{"pointer": "/type", "equals": "welcome"}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, websocketfake.Options{}, func(w *world) {
				maps.Copy(w.Config, c.config)
				w.fake.Behave(bot, c.how)
				b := w.start()
				time.Sleep(20 * time.Second)
				if got := len(b.Readies()); got != c.want {
					t.Errorf("got %d readies, want %d", got, c.want)
				}
				if c.want == 0 {
					w.WantExit(b, channel.Transient, "no_ready")
					return
				}
				w.fake.Say(bot, `{"type":"hello"}`)
				synctest.Wait()
				if got := len(b.Readies()); got != 1 {
					t.Errorf("got %d readies after a second hello, want one in a term", got)
				}
				w.Stop(b, channel.ErrDraining)
			})
		})
	}
	t.Run("a hello is no event", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			b := w.connected()
			if got := w.Kept(); len(got) != 0 {
				t.Errorf("got %q kept, want nothing", got)
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
}
