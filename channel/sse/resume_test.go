package sse_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/sse/ssefake"
)

func TestResume(t *testing.T) {
	bubble(t, ssefake.Options{}, func(w *world) {
		b := w.connected()
		if got := w.lastConnection().After; got != "" {
			t.Errorf("got asked for what follows %q at first, want no Last-Event-ID", got)
		}
		w.fake.Push(bot, 5)
		synctest.Wait()

		// What is sent into a dead line is lost, but for the position.
		w.Net.Pause()
		w.fake.Push(bot, 5)
		time.Sleep(time.Second)
		w.Net.Cut()
		w.Net.Resume()
		w.WantExit(b, channel.Transient, "broken")
		b = w.connected()
		if got := w.lastConnection().After; got != "a-000005" {
			t.Errorf("got asked for what follows %q, want the last event stored", got)
		}
		if got := w.Kept(); len(got) != 10 || w.Memory.Duplicates() != 0 {
			t.Errorf("got %q and %d duplicates, want ten events, each sent for once", got, w.Memory.Duplicates())
		}
		w.Stop(b, channel.ErrDraining)
		w.NoViolations()

		// The position of another address is none here.
		w.Config["url"] = "http://" + platform + "/bot/b"
		b = w.connected()
		if got := w.fake.Connections("b")[0].After; got != "" {
			t.Errorf("got %q asked of another address, want no position there", got)
		}
		w.Stop(b, channel.ErrDraining)
	})
}

func TestThePositionMovesWithItsEvents(t *testing.T) {
	t.Run("a commit that fails leaves it, and ends the connection", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			b := w.connected()
			w.fake.Push(bot, 2)
			synctest.Wait()
			w.Memory.Fail(channel.ErrStore, false)
			w.fake.Push(bot, 2)
			if err := b.Wait(); err == nil || !strings.Contains(err.Error(), "store what was heard") {
				t.Errorf("got %v, want the store's end", err)
			}
			w.Memory.Fail(nil, false)
			b = w.connected()
			if got := w.lastConnection().After; got != "a-000002" || len(w.Kept()) != 4 {
				t.Errorf("got asked for what follows %q and %q kept, want it from the second on, and all four", got, w.Kept())
			}
			w.Stop(b, channel.ErrDraining)
			w.NoViolations()
		})
	})
	t.Run("a commit whose answer is lost repeats nothing", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			b := w.connected()
			w.Memory.Fail(channel.ErrStore, true)
			w.fake.Push(bot, 5)
			_ = b.Wait()
			w.Memory.Fail(nil, false)
			b = w.connected()
			if got := w.Kept(); len(got) != 5 {
				t.Errorf("got %q, want five events once", got)
			}
			w.Stop(b, channel.ErrDraining)
			w.NoViolations()
		})
	})
	t.Run("an empty id resets it", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			b := w.connected()
			w.fake.Push(bot, 1)
			w.fake.Say(bot, "id:\ndata: from the start, please\n\n")
			synctest.Wait()
			w.Stop(b, channel.ErrDraining)
			b = w.connected()
			if got := w.lastConnection().After; got != "" {
				t.Errorf("got asked for what follows %q, want no Last-Event-ID", got)
			}
			if got := w.Kept(); len(got) != 2 || w.Memory.Duplicates() != 1 {
				t.Errorf("got %q and %d duplicates, want the first event known again", got, w.Memory.Duplicates())
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
	t.Run("an id without an event moves it", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			b := w.connected()
			w.fake.Say(bot, "id: 17\n\n")
			synctest.Wait()
			if got := string(w.Memory.Cursor()); !strings.Contains(got, `"at":"17"`) || len(w.Kept()) != 0 {
				t.Errorf("got cursor %s and %q kept, want the position and no event", got, w.Kept())
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
	t.Run("an event without one leaves it", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			b := w.connected()
			w.fake.Say(bot, "id: 17\ndata: a\n\ndata: b\n\n")
			synctest.Wait()
			if got := string(w.Memory.Cursor()); !strings.Contains(got, `"at":"17"`) || len(w.Kept()) != 2 {
				t.Errorf("got cursor %s and %d kept, want the position and two events", got, len(w.Kept()))
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
}

func TestThePositionStandsWhereTheConfigWantsIt(t *testing.T) {
	t.Run("in the URL and the body", func(t *testing.T) {
		bubble(t, ssefake.Options{Token: func(string) string { return token }}, func(w *world) {
			var heard []string
			w.hears(func(r request) { heard = append(heard, r.uri+" "+r.kind+" "+r.body) })
			w.Config["url"] = "http://stub.test:80/{{token}}?after={{cursor}}"
			w.Config["method"] = "POST"
			w.Config["body"] = `{"after":{{cursor}},"key":"k-{{token}}"}`
			for range 2 {
				w.WantExit(w.start(), channel.Transient, "closed")
			}
			want := []string{
				"/" + token + "?after= application/json " + fmt.Sprintf(`{"after":"","key":"k-%s"}`, token),
				"/" + token + "?after=a%26%22b application/json " + fmt.Sprintf(`{"after":"a\u0026\"b","key":"k-%s"}`, token),
			}
			if !slices.Equal(heard, want) {
				t.Errorf("got %q, want %q", heard, want)
			}
		})
	})
	t.Run("a body that is no JSON is text", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			var heard []string
			w.hears(func(r request) { heard = append(heard, r.method+" "+r.kind+" "+r.body) })
			w.Config["url"], w.Config["method"], w.Config["body"] = "http://stub.test:80/", "REPORT", "from {{cursor}}"
			w.WantExit(w.start(), channel.Transient, "closed")
			if want := []string{"REPORT text/plain; charset=utf-8 from "}; !slices.Equal(heard, want) {
				t.Errorf("got %q, want %q", heard, want)
			}
		})
	})
	t.Run("headers may replace ours", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			var got request
			w.hears(func(r request) { got = r })
			w.Config["url"], w.Config["method"], w.Config["body"] = "http://stub.test:80/", "POST", "{}"
			w.Config["headers"] = map[string]any{"Accept": "application/json, text/event-stream", "content-type": "application/graphql", "Host": "other.test"}
			w.WantExit(w.start(), channel.Transient, "closed")
			if got.accept != "application/json, text/event-stream" || got.kind != "application/graphql" || got.host != "other.test" {
				t.Errorf("got %+v, want the configured headers", got)
			}
		})
	})
}

func TestManyEventsOverManyCuts(t *testing.T) {
	bubble(t, ssefake.Options{Split: 50}, func(w *world) {
		for i := range 40 {
			w.fake.Push(bot, 50)
			b := w.start()
			w.Net.Latency(time.Duration(i%7) * time.Millisecond)
			time.Sleep(time.Duration(i) * time.Millisecond)
			if i%2 == 0 {
				w.Net.Cut()
			} else {
				b.Kill()
			}
			_ = b.Stop(channel.ErrDraining)   // it may have dialled after the cut
			time.Sleep(20 * time.Millisecond) // the server hears of the end
		}
		w.Net.Latency(0)
		b := w.connected()
		if got := w.Kept(); len(got) != 2000 || !slices.IsSorted(got) {
			t.Errorf("got %d kept, want 2000 once each, in order", len(got))
		}
		if got := w.fake.MaxConcurrent(bot); got != 1 {
			t.Errorf("got %d connections at once, want one", got)
		}
		w.Stop(b, channel.ErrDraining)
		w.NoViolations()
	})
}
