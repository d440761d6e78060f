//go:build unix

package evidence_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"leasehold/channel/websocket"
	"leasehold/delivery"
	"leasehold/engine"
)

func TestMute(t *testing.T) {
	for name, mute := range map[string]func(b *bubble) (spoken func()){
		"whose line is dead": func(b *bubble) func() { b.street.Pause(); return b.street.Resume },
		"that a NAT forgot":  func(b *bubble) func() { b.street.BlackholeExisting(); return func() {} },
		"whose platform hangs": func(b *bubble) func() {
			for _, bot := range b.bots {
				b.platform.Silence(bot)
			}
			return func() {}
		},
	} {
		t.Run("a connection "+name+" is noticed within the stated bound, and what was said meanwhile arrives", func(t *testing.T) {
			inBubble(t, 3, delivery.Target{}, func(b *bubble) {
				b.say()
				time.Sleep(time.Hour)
				spoken := mute(b)
				began := time.Now()
				b.say() // into the void
				noticed := map[string]time.Duration{}
				b.within(websocket.Spec.Deaf, "every connection is given up", func() bool {
					for _, l := range b.engine.Status().Links {
						if l.State != engine.Connected && noticed[l.Installation] == 0 {
							noticed[l.Installation] = time.Since(began)
							want(b, "reason of "+l.Installation, l.Reason, "silent")
						}
					}
					return len(noticed) == len(b.bots)
				})
				slowest := time.Duration(0)
				for _, d := range noticed {
					slowest = max(slowest, d)
				}
				spoken()
				b.within(2*time.Minute, "what was said arrives", func() bool { return b.program.taken() == b.pushed })
				time.Sleep(time.Second)
				b.arrived()
				b.Logf("noticed after %v at the latest; the bound is %v", slowest.Round(time.Second), websocket.Spec.Deaf)
			})
		})
	}
}

func TestQuiet(t *testing.T) {
	t.Run("a day of pongs and no events ends no connection and writes nothing", func(t *testing.T) {
		inBubble(t, 5, delivery.Target{}, func(b *bubble) {
			b.say()
			time.Sleep(time.Minute) // the last state is written
			before := fmt.Sprint(hashes(b, filepath.Dir(b.path)))
			dials := b.street.Dials()
			time.Sleep(24 * time.Hour)
			pings := 0
			for _, bot := range b.bots {
				all := b.platform.Connections(bot)
				want(b, "connections of "+bot, len(all), 1)
				pings += all[0].Pings
				if all[0].Pings < 3600 {
					b.Errorf("%s: got %d pings in a day, want one every 20 s", bot, all[0].Pings)
				}
			}
			want(b, "connections now", b.platform.Live(""), len(b.bots))
			want(b, "connected", b.engine.Status().Connected, len(b.bots))
			want(b, "dials in a day", b.street.Dials()-dials, 0)
			want(b, "database and log after a day", fmt.Sprint(hashes(b, filepath.Dir(b.path))), before)
			b.say()
			b.within(time.Second, "what is said then arrives at once", func() bool { return b.program.taken() == b.pushed })
			time.Sleep(time.Second)
			b.arrived()
			b.Logf("%d connections, %d pings, 0 dials, 0 bytes changed in 24 hours", len(b.bots), pings)
		})
	})
}
