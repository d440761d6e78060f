package heartbeat_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/heartbeat"
)

func start(t *testing.T, m *channeltest.Memory, config string) *channeltest.Bench {
	t.Helper()
	c, err := heartbeat.Spec.Decode(json.RawMessage(config), nil)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := c.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := channeltest.NewBench(nil, m) // it dials nothing
	b.Start(t.Context(), ch)
	return b
}

func stop(t *testing.T, b *channeltest.Bench) {
	t.Helper()
	before := time.Now()
	if err := b.Stop(channel.ErrDraining); err != nil {
		t.Errorf("got %v, want nil", err)
	}
	if took := time.Since(before); took != 0 {
		t.Errorf("got a stop that took %s, want none", took)
	}
}

func wantIDs(t *testing.T, m *channeltest.Memory, n int) {
	t.Helper()
	events := m.Events()
	if len(events) != n {
		t.Fatalf("got %d events, want %d", len(events), n)
	}
	for i, e := range events {
		if want := fmt.Sprintf("heartbeat-%d", i+1); e.ID != want {
			t.Errorf("got id %q, want %q", e.ID, want)
		}
	}
}

func TestHeartbeat(t *testing.T) {
	t.Run("it is ready at once and emits every interval", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := channeltest.NewMemory()
			b := start(t, m, `{}`)
			synctest.Wait()
			if len(b.Readies()) != 1 {
				t.Errorf("got %d readies, want one", len(b.Readies()))
			}
			wantIDs(t, m, 1) // the first at once
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			wantIDs(t, m, 11)
			if n, at := b.Alives(); n != 11 || time.Since(at) > time.Minute {
				t.Errorf("got %d proofs of life, want one with each event", n)
			}
			e := m.Events()[10]
			if e.Type != "heartbeat" || e.Text != "heartbeat 11" || !e.Time.Equal(time.Now()) || !json.Valid(e.Raw) {
				t.Errorf("got %+v, want a heartbeat of now", e)
			}
			stop(t, b)
		})
	})
	t.Run("a restart within an interval emits nothing of its own", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := channeltest.NewMemory()
			for range 15 {
				b := start(t, m, `{"every":"10s"}`)
				time.Sleep(time.Second)
				stop(t, b)
			}
			wantIDs(t, m, 2)
			time.Sleep(time.Hour) // what was missed is not made up for
			b := start(t, m, `{"every":"10s"}`)
			synctest.Wait()
			wantIDs(t, m, 3)
			stop(t, b)
		})
	})
	t.Run("a failed commit ends the term, and its id comes again", func(t *testing.T) {
		for name, persisted := range map[string]bool{"failed": false, "failed but persisted": true} {
			synctest.Test(t, func(t *testing.T) {
				m := channeltest.NewMemory()
				m.Fail(channel.ErrStore, persisted)
				b := start(t, m, `{"every":"10s"}`)
				if err := b.Wait(); !errors.Is(err, channel.ErrStore) {
					t.Errorf("%s: got %v, want the store's failure", name, err)
				}
				m.Fail(nil, false)
				b = start(t, m, `{"every":"10s"}`)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				want := 2
				wantIDs(t, m, want)
				stop(t, b)
			})
		}
	})
	t.Run("a clock that was set back stops nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := channeltest.NewMemory()
			b := start(t, m, `{}`)
			synctest.Wait()
			stop(t, b)
			var cursor map[string]any
			if err := json.Unmarshal(m.Cursor(), &cursor); err != nil {
				t.Fatal(err)
			}
			cursor["at"] = time.Now().Add(1000 * time.Hour)
			raw, err := json.Marshal(cursor)
			if err != nil {
				t.Fatal(err)
			}
			if err := channel.NewLink(channeltest.NewBench(nil, m)).Accept(t.Context(), channel.Batch{Cursor: raw}); err != nil {
				t.Fatal(err)
			}
			b = start(t, m, `{}`)
			synctest.Wait()
			wantIDs(t, m, 2)
			stop(t, b)
		})
	})
	t.Run("a drain waits for a commit that has begun", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := channeltest.NewMemory()
			release := m.Hold()
			b := start(t, m, `{}`)
			synctest.Wait()
			time.AfterFunc(time.Second, release)
			if err := b.Stop(channel.ErrDraining); err != nil {
				t.Errorf("got %v, want nil", err)
			}
			wantIDs(t, m, 1)
		})
	})
	t.Run("too short an interval is refused", func(t *testing.T) {
		for _, every := range []string{"0s", "1ms", "999ms"} {
			c, err := heartbeat.Spec.Decode(json.RawMessage(`{"every":"`+every+`"}`), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Build(t.Context()); err == nil || !strings.Contains(err.Error(), "every: want at least 1s") {
				t.Errorf("%s: got %v, want it refused", every, err)
			}
		}
		if _, err := heartbeat.Spec.Decode(json.RawMessage(`{"every":"-1m"}`), nil); err == nil {
			t.Error("got no error for a negative interval, want one")
		}
	})
	t.Run("a foreign cursor begins the numbers anew, above all that were used", func(t *testing.T) {
		for _, cursor := range []string{"s123_456", `{"place":"h/p","at":"x"}`, `{}`, `{"seq":0}`} {
			synctest.Test(t, func(t *testing.T) {
				m := channeltest.NewMemory()
				if err := channel.NewLink(channeltest.NewBench(nil, m)).Accept(t.Context(), channel.Batch{Cursor: []byte(cursor)}); err != nil {
					t.Fatal(err)
				}
				b := start(t, m, `{}`)
				time.Sleep(time.Minute)
				synctest.Wait()
				e := m.Events()
				if len(e) != 2 || e[0].ID != fmt.Sprintf("heartbeat-%d", time.Now().Add(-time.Minute).Unix()+1) || e[1].ID == e[0].ID {
					t.Errorf("%s: got %+v, want two events with the time's numbers", cursor, e)
				}
				if len(b.Notices()) != 1 {
					t.Errorf("%s: got notices %v, want one", cursor, b.Notices())
				}
				stop(t, b)
			})
		}
	})
}
