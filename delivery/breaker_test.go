package delivery

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

func TestBreaker(t *testing.T) {
	said := func(conversation string, sender channel.Ref) *channel.Event {
		return &channel.Event{Conversation: channel.Ref{ID: conversation}, Sender: sender}
	}
	person, bot := channel.Ref{ID: "U1"}, channel.Ref{ID: "B1", Bot: true}
	// inBubble gives a breaker that notes what it tells.
	inBubble := func(t *testing.T, f func(t *testing.T, b *Breaker, told func() string)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			words := ""
			b := &Breaker{Told: func(l Loop, stopped bool) {
				mu.Lock()
				defer mu.Unlock()
				words += fmt.Sprintf("%s/%s %v;", l.Installation, l.Conversation, stopped)
			}}
			f(t, b, func() string { mu.Lock(); defer mu.Unlock(); return words })
		})
	}
	const round = "more than 60 answers in a minute: a loop?"

	t.Run("a minute has so many answers and no more, in each conversation by itself", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *Breaker, told func() string) {
			for range DefaultLoopLimit {
				same(t, "answer", b.Answer("a", said("C1", person), time.Now()), "")
			}
			same(t, "one too many", b.Answer("a", said("C1", person), time.Now()), round)
			same(t, "another conversation", b.Answer("a", said("C2", person), time.Now()), "")
			same(t, "another installation", b.Answer("b", said("C1", person), time.Now()), "")
			same(t, "told", told(), "a/C1 true;")
			same(t, "stopped", len(b.Stopped()), 1)
		})
	})

	t.Run("it goes on after a while in which nobody tried, and not before", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *Breaker, told func() string) {
			for range DefaultLoopLimit + 1 {
				b.Answer("a", said("C1", person), time.Now())
			}
			for range 10 {
				time.Sleep(DefaultLoopQuiet - time.Second)
				same(t, "who goes on trying", b.Answer("a", said("C1", person), time.Now()), round)
			}
			time.Sleep(DefaultLoopQuiet)
			same(t, "stopped after a while", len(b.Stopped()), 0)
			same(t, "answer after a while", b.Answer("a", said("C1", person), time.Now()), "")
			same(t, "told", told(), "a/C1 true;a/C1 false;")
		})
	})

	t.Run("bots that answer each other slowly are stopped, and people are not", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *Breaker, _ func() string) {
			for n := range 100 {
				time.Sleep(10 * time.Second)
				same(t, "a person", b.Answer("a", said("C1", person), time.Now()), "")
				why := b.Answer("a", said("C2", bot), time.Now())
				same(t, fmt.Sprint("bots, at turn ", n+1), why != "", n >= DefaultLoopTurns)
			}
		})
	})

	t.Run("what was heard over an hour and is answered at once is no loop", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *Breaker, _ func() string) {
			began := time.Now()
			for n := range 1000 {
				e := said("C1", person)
				e.Time = began.Add(-time.Hour + time.Duration(n)*3*time.Second)
				same(t, "answer", b.Answer("a", e, time.Now()), "")
			}
		})
	})

	t.Run("conversations that rest are forgotten", func(t *testing.T) {
		inBubble(t, func(t *testing.T, b *Breaker, _ func() string) {
			for n := range 5000 {
				b.Answer("a", said(fmt.Sprint("C", n), person), time.Now())
				time.Sleep(time.Second)
			}
			if n := len(b.talks); n > 2048 {
				t.Errorf("got %d conversations in memory, want those of the last minutes", n)
			}
		})
	})

	t.Run("answers behind the limit are refused with the reason, and their events delivered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, newOutbox(), speaking(Options{Breaker: &Breaker{Limit: 3}}), Target{Name: "app", Sink: answers(`{"text":"a"}`)})
			b.hold("a")
			var refused []string
			for range 5 { // each answer is heard as the next event
				seq := b.box.say("a", "C", "app")
				b.Accepted(b.box.term("a"), seq)
				time.Sleep(time.Second)
				row := b.box.row(seq, "app")
				same(t, "state", row.state, Delivered)
				refused = append(refused, row.said[0].Refused)
			}
			const why = "more than 3 answers in a minute: a loop?"
			sameList(t, "refused", refused, []string{"", "", "", why, why})
		})
	})

	t.Run("many at once are counted one by one", func(t *testing.T) {
		b := &Breaker{}
		var all sync.WaitGroup
		var mu sync.Mutex
		stopped := 0
		at := time.Now()
		for range 4 {
			all.Go(func() {
				for range 100 {
					if b.Answer("a", said("C1", person), at) != "" {
						mu.Lock()
						stopped++
						mu.Unlock()
					}
				}
			})
		}
		all.Wait()
		same(t, "stopped", stopped, 400-DefaultLoopLimit)
	})
}
