//go:build unix

package evidence_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"leasehold/delivery"
)

// minutesDown is how long a target is down, in minutes; in each of them every
// conversation goes on.
const minutesDown = 60

func TestTargetDownForAnHour(t *testing.T) {
	refused := func(b *bubble) (up func()) {
		b.backyard.Refuse(true)
		b.backyard.Cut() // no connection of before may serve either
		return func() { b.backyard.Refuse(false) }
	}
	broken := func(b *bubble) (up func()) {
		var down atomic.Bool
		down.Store(true)
		b.program.answer = func(string) int {
			if down.Load() {
				return http.StatusInternalServerError
			}
			return 0
		}
		return func() { down.Store(false) }
	}
	outage := func(policy delivery.OnFailure, down func(b *bubble) (up func())) func(t *testing.T) {
		return func(t *testing.T) {
			inBubble(t, 3, delivery.Target{OnFailure: policy}, func(b *bubble) {
				b.say()
				b.within(10*time.Second, "what was said before arrives", func() bool { return b.program.taken() == b.pushed })
				before := b.pushed
				time.Sleep(time.Second) // until it is marked, too

				up := down(b)
				for range minutesDown {
					b.say()
					time.Sleep(time.Minute)
				}
				want(b, "taken while it is down", b.program.taken(), before)
				want(b, "acknowledged while it is down", b.acked(), b.pushed)
				want(b, "circuit", b.circuit(), delivery.Open)
				stored := rows(b, b.path)
				want(b, "stored while it is down", len(stored), b.pushed)
				waiting := 0
				for event, r := range stored {
					if r.state == delivery.Delivered {
						continue
					}
					waiting++
					if r.state != delivery.Pending || r.attempts != 0 {
						b.Errorf("%s: got %v after %d attempts, want it waiting and no attempt used up", event, r.state, r.attempts)
					}
				}
				want(b, "waiting after an hour", waiting, b.pushed-before)

				up()
				took := b.within(2*time.Minute, "everything arrives", func() bool { return b.program.taken() == b.pushed })
				time.Sleep(time.Second)
				b.arrived()
				want(b, "circuit after it", b.circuit(), delivery.Closed)
				for _, bot := range b.bots {
					want(b, "connections of "+bot, len(b.platform.Connections(bot)), 1)
				}
				b.Logf("%d events waited, all taken in order %v after it was up again, after %d requests in the hour", waiting, took, b.program.requests-b.pushed)
			})
		}
	}
	t.Run("an hour of refused connections loses nothing, uses up no attempt and drains in order", outage(delivery.Skip, refused))
	t.Run("so does an hour of refused connections under hold", outage(delivery.Hold, refused))
	t.Run("so does an hour of 500", outage(delivery.Skip, broken))
	t.Run("so does an hour of 500 under hold", outage(delivery.Hold, broken))
}

func TestHold(t *testing.T) {
	t.Run("under hold one event's 500 delays its own conversation and no other, and none of them loses its order", func(t *testing.T) {
		inBubble(t, 3, delivery.Target{OnFailure: delivery.Hold}, func(b *bubble) {
			const bad, behind = "bot01-000002", "bot01 c1"
			var mended atomic.Bool
			b.program.answer = func(event string) int {
				if event == bad && !mended.Load() {
					return http.StatusInternalServerError
				}
				return 0
			}
			const minutes = 20
			for range minutes {
				b.say()
				time.Sleep(time.Minute)
			}
			lanes := b.program.lanes()
			want(b, "taken of the conversation behind it", len(lanes[behind]), 0)
			want(b, "conversations of which something was taken", len(lanes), 3*conversations-1)
			for lane, events := range lanes {
				want(b, "taken of "+lane+" meanwhile", len(events), minutes)
			}
			want(b, "circuit", b.circuit(), delivery.Closed)
			tries := rows(b, b.path)[bad].attempts
			if tries != 5 {
				b.Errorf("got %d attempts of it in %d minutes, want the first and those after 5 s, 30 s, 2 and 10 minutes", tries, minutes)
			}
			mended.Store(true)
			took := b.within(time.Hour, "everything arrives", func() bool { return b.program.taken() == b.pushed })
			time.Sleep(time.Second)
			b.arrived()
			b.Logf("%d attempts of one event in %d minutes; its conversation of %d arrived in order %v after the event was mended", tries, minutes, minutes, took.Round(time.Second))
		})
	})
}
