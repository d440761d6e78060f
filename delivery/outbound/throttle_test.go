package outbound

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

func perSecond(n, burst int) channel.Rate { return channel.Rate{N: n, Per: time.Second, Burst: burst} }

// triedAt is when messages were tried first, in the order of their seqs.
func triedAt(w *world, seqs ...int64) string {
	var at []time.Duration
	for _, seq := range seqs {
		tries := w.platform.times(fmt.Sprint("out_", seq))
		if len(tries) == 0 {
			tries = []time.Duration{-1}
		}
		at = append(at, tries[0])
	}
	return fmt.Sprint(at)
}

func TestLimits(t *testing.T) {
	bubble(t, "a conversation waits for its limit in order, without using up attempts; others go on", func(w *world) {
		w.platform.limits.Chat = perSecond(1, 0)
		w.live("a")
		var seqs []int64
		for range 3 {
			seqs = append(seqs, w.post("a", "C1"))
		}
		seqs = append(seqs, w.post("a", "C2"))
		time.Sleep(1500 * time.Millisecond)
		want(w, "its reason", w.m.Limited("a", "a", "C1"), "the limit of a: 1/s in one conversation")
		want(w, "the other's reason", w.m.Limited("a", "a", "C2"), "")
		want(w, "conversations held", w.m.Held(), 1)
		w.is(seqs[2], Queued, "")
		time.Sleep(time.Minute)
		want(w, "when", triedAt(w, seqs...), "[0s 1s 2s 0s]")
		want(w, "attempts of the last", w.is(seqs[2], Sent, "").attempts, 1)
		want(w, "conversations held in the end", w.m.Held(), 0)
	})

	bubble(t, "all conversations of an installation share its limit, whose message is the oldest first", func(w *world) {
		w.platform.limits.All = perSecond(2, 0)
		w.live("a")
		var seqs []int64
		for n := range 6 {
			seqs = append(seqs, w.box.post("a", fmt.Sprint("C", n)))
		}
		w.post("a", "C0")
		time.Sleep(600 * time.Millisecond)
		want(w, "their reason", w.m.Limited("a", "a", "C9"), "the limit of a: 2/s")
		time.Sleep(time.Minute)
		want(w, "when", triedAt(w, seqs...), "[0s 500ms 1s 1.5s 2s 2.5s]")
	})

	bubble(t, "riders have the limits to themselves", func(w *world) {
		w.platform.limits.All = perSecond(1, 0)
		w.live("a")
		one := w.post("a", "C1", func(r *fakeRow) { r.Installation = "team1" })
		two := w.post("a", "C2", func(r *fakeRow) { r.Installation = "team2" })
		time.Sleep(time.Minute)
		want(w, "when", triedAt(w, one, two), "[0s 0s]")
	})

	bubble(t, "in no span is there more than the limits allow, however much waits", func(w *world) {
		w.platform.limits = channel.Limits{All: perSecond(10, 4), Chat: channel.Rate{N: 5, Per: 3 * time.Second, Burst: 2}}
		w.platform.answer = func(_ channel.Message, n int) (time.Duration, bool, error) { return 30 * time.Millisecond, true, nil }
		w.live("a")
		for n := range 300 {
			w.box.post("a", fmt.Sprint("C", n*n%7))
		}
		w.m.Wake("a")
		time.Sleep(DefaultExpiry)
		want(w, "sent", len(w.platform.got()), 300)
		within := func(what string, tries []time.Duration, n int, per time.Duration) {
			most := 0
			for i, at := range tries {
				last := i
				for last < len(tries) && tries[last]-at < per {
					last++
				}
				most = max(most, last-i)
			}
			if most != n {
				t.Errorf("%s: got %d within %s, want up to %d", what, most, per, n)
			}
		}
		var all []time.Duration
		chats := map[string][]time.Duration{}
		w.platform.mu.Lock()
		for _, try := range w.platform.tries {
			var n int
			_, _ = fmt.Sscanf(try.id, "out_%d", &n)
			all = append(all, try.at)
			chat := fmt.Sprint("C", (n-1)*(n-1)%7)
			chats[chat] = append(chats[chat], try.at)
		}
		w.platform.mu.Unlock()
		within("all", all, 10, time.Second)
		for chat, tries := range chats {
			within(chat, tries, 5, 3*time.Second)
		}
	})

	bubble(t, "what waits for a limit expires in its time, and then is not sent", func(w *world) {
		w.platform.limits.Chat = channel.Rate{N: 1, Per: time.Hour}
		w.live("a")
		w.post("a", "C1")
		seq := w.post("a", "C1", expiry(10*time.Second))
		time.Sleep(10*time.Second + time.Millisecond)
		r := w.is(seq, Expired, tooLate)
		want(w, "attempts", r.attempts, 0)
		want(w, "tries", len(w.platform.times("out_2")), 0)
	})

	bubble(t, "an expired or superseded message takes nothing of the limit", func(w *world) {
		w.platform.limits.Chat = perSecond(1, 0)
		edit := func(r *fakeRow) { r.Op, r.MessageID = "edit", "M1" }
		w.live("a")
		w.post("a", "C1")
		w.post("a", "C1", edit)
		w.post("a", "C1", edit)
		last := w.post("a", "C1", edit)
		time.Sleep(time.Minute)
		want(w, "when", triedAt(w, 1, 2, 3, last), "[0s -1ns -1ns 1s]")
	})

	bubble(t, "limits outlive the connection, and change with what the next one says", func(w *world) {
		w.platform.limits.Chat = channel.Rate{N: 1, Per: 10 * time.Second}
		term := w.live("a")
		w.post("a", "C1")
		time.Sleep(time.Second)
		w.m.Live(term, nil)
		w.m.Live(term, w.platform)
		second := w.post("a", "C1")
		time.Sleep(20 * time.Second)
		want(w, "when", triedAt(w, second), "[10s]")
		w.post("a", "C1")
		time.Sleep(time.Second)
		w.m.Live(term, nil)
		w.platform.limits.Chat = channel.Rate{}
		w.m.Live(term, w.platform)
		free := w.post("a", "C1")
		synctest.Wait()
		w.is(free, Sent, "")
	})
}

func TestToldToWait(t *testing.T) {
	limited := func(of string, limit func(error, time.Duration) error) func(channel.Message, int) (time.Duration, bool, error) {
		return func(m channel.Message, n int) (time.Duration, bool, error) {
			if m.ID == of && n == 0 {
				return 0, false, limit(errors.New("slow down"), 30*time.Second)
			}
			return 0, true, nil
		}
	}

	bubble(t, "a conversation that the platform slows down waits alone", func(w *world) {
		w.platform.answer = limited("out_1", channel.RateLimited)
		w.live("a")
		first := w.post("a", "C1", expiry(10*time.Second)) // it will never go again
		second := w.post("a", "C1")
		third := w.post("a", "C2")
		time.Sleep(15 * time.Second)
		if why := w.m.Limited("a", "a", "C1"); !strings.HasPrefix(why, "the platform, which asked to send nothing into this conversation until 2000-01-01T00:00:31Z") {
			t.Errorf("got %q, want the platform's wish", why)
		}
		time.Sleep(time.Minute)
		want(w, "attempts", w.is(first, Expired, tooLate).attempts, 0)
		want(w, "when", triedAt(w, second, third), "[30s 0s]")
	})

	bubble(t, "an account that it slows down waits with everything, and another account does not", func(w *world) {
		w.platform.answer = limited("out_1", channel.RateLimitedAll)
		w.live("a")
		first := w.post("a", "C1")
		time.Sleep(time.Second)
		second := w.post("a", "C2")
		rider := w.post("a", "C2", func(r *fakeRow) { r.Installation = "team1" })
		time.Sleep(time.Second)
		if why := w.m.Limited("a", "a", "C2"); !strings.HasPrefix(why, "the platform, which asked a to send nothing until ") {
			t.Errorf("got %q, want the platform's wish", why)
		}
		time.Sleep(time.Minute)
		want(w, "attempts", w.is(first, Sent, "").attempts, 1)
		want(w, "when", triedAt(w, second, rider), "[30s 1s]")
	})
}

func TestThrottleForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var th throttle
		th.set(channel.Limits{Chat: perSecond(1, 0)})
		most := 0
		for n := range 20_000 {
			if wait, why := th.take("a", fmt.Sprint("C", n)); wait > 0 {
				t.Fatalf("conversation %d: got a wait for %s, want none", n, why)
			}
			most = max(most, len(th.accounts["a"].chats))
			time.Sleep(10 * time.Millisecond) // a hundred are never at rest
		}
		if most < 100 || most > 400 {
			t.Errorf("got %d conversations known, want the hundred that have not rested, and up to as many again", most)
		}
		th.shut("a", "C1", false, time.Hour)
		for n := range 1000 {
			th.take("a", fmt.Sprint("D", n))
			time.Sleep(10 * time.Millisecond)
		}
		if wait, _ := th.waits("a", "C1"); wait < 50*time.Minute {
			t.Errorf("got a wait of %s, want the hour that the platform asked for", wait)
		}
	})
	t.Run("without limits it knows nobody", func(t *testing.T) {
		var th throttle
		for n := range 100 {
			th.take("a", fmt.Sprint("C", n))
		}
		if len(th.accounts) != 0 {
			t.Errorf("got %d accounts, want none", len(th.accounts))
		}
	})
}
