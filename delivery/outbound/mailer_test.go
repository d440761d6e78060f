package outbound

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

// bubble runs f in simulated time.
func bubble(t *testing.T, name string, f func(w *world), change ...func(*Options)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, change...)
			f(w)
			w.stop()
		})
	})
}

func TestSending(t *testing.T) {
	bubble(t, "a message that was posted is sent at once, and its receipt is kept", func(w *world) {
		w.live("a")
		seq := w.post("a", "C1")
		synctest.Wait()
		r := w.is(seq, Sent, "")
		want(w, "receipt", r.receipt, `{"message_id":"m-out_1"}`)
		want(w, "attempts", r.attempts, 1)
		want(w, "when", fmt.Sprint(w.platform.times("out_1")), "[0s]")
	})

	bubble(t, "a conversation goes in order, one at a time; others go beside it", func(w *world) {
		w.platform.answer = func(channel.Message, int) (time.Duration, bool, error) { return time.Second, true, nil }
		w.live("a")
		for range 5 {
			for c := range 3 {
				w.post("a", fmt.Sprint("C", c))
			}
		}
		time.Sleep(5*time.Second + time.Millisecond)
		want(w, "sent", len(w.platform.got()), 15)
		want(w, "at once", w.platform.atOnce(), 3)
		inOrder(w, func(id string) string { var n int; _, _ = fmt.Sscanf(id, "out_%d", &n); return fmt.Sprint(n % 3) })
	})

	bubble(t, "of one lease no more are on their way than the bound, of all no more than theirs", func(w *world) {
		w.platform.answer = func(channel.Message, int) (time.Duration, bool, error) { return time.Second, true, nil }
		for _, lease := range []string{"a", "b", "c"} {
			w.live(lease)
			for n := range 8 {
				w.post(lease, fmt.Sprint(lease, n))
			}
		}
		time.Sleep(time.Millisecond)
		want(w, "at once", w.platform.atOnce(), 5)
		time.Sleep(5 * time.Second)
		want(w, "sent", len(w.platform.got()), 24)
		want(w, "at once in the end", w.platform.atOnce(), 5)
	}, func(o *Options) { o.PerLease, o.Total = 2, 5 })

	bubble(t, "without a connection a message waits, and goes when there is one", func(w *world) {
		term := w.box.grant("a")
		w.m.Hold(term)
		seq := w.post("a", "C1")
		time.Sleep(10 * time.Minute)
		w.is(seq, Queued, "")
		w.m.Live(term, nil) // it cannot speak
		time.Sleep(time.Minute)
		w.is(seq, Queued, "")
		w.m.Live(term, w.platform)
		synctest.Wait()
		w.is(seq, Sent, "")
	})

	bubble(t, "what was posted while nobody held the lease is found", func(w *world) {
		seq := w.box.post("a", "C1")
		w.live("a")
		time.Sleep(time.Second)
		w.is(seq, Sent, "")
	})

	bubble(t, "what another process posts is found when it is told, or looked for", func(w *world) {
		w.live("a")
		synctest.Wait()
		seq := w.box.post("a", "C1")
		time.Sleep(6 * time.Second)
		w.is(seq, Sent, "")
	}, func(o *Options) { o.Poll = 5 * time.Second })

	bubble(t, "the end of a term takes its sender back, that of an earlier one nothing", func(w *world) {
		term := w.live("a")
		next := term
		next.Run++
		other := &platform{}
		w.m.Live(next, other)
		w.m.Live(term, nil)
		w.post("a", "C1")
		synctest.Wait()
		want(w, "sent through the new one", len(other.got()), 1)
		w.m.Live(next, nil)
		seq := w.post("a", "C1")
		time.Sleep(time.Minute)
		w.is(seq, Queued, "")
	})

	bubble(t, "more than memory holds is sent, in order, and read about once", func(w *world) {
		const n = 3*windowSize + 17
		for i := range n {
			w.box.post("a", fmt.Sprint("C", i%2))
		}
		w.live("a")
		time.Sleep(time.Minute)
		want(w, "sent", len(w.platform.got()), n)
		inOrder(w, func(id string) string { var n int; _, _ = fmt.Sscanf(id, "out_%d", &n); return fmt.Sprint(n % 2) })
		if w.box.read > 2*n {
			w.Errorf("got %d rows read for %d messages, want each about once", w.box.read, n)
		}
	})
}

func TestRest(t *testing.T) {
	bubble(t, "leases without messages cost one question for all of them, and nothing after it", func(w *world) {
		before := ours()
		want(w, "the mailer's own goroutines are seen", before > 0, true)
		for n := range 1000 {
			w.live(fmt.Sprint("lease-", n))
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if got := ours(); got > before {
			w.Errorf("got %d goroutines, want no more than %d", got, before)
		}
		if n := w.box.called("laden"); n > 2 {
			w.Errorf("asked %d times, want it coalesced", n)
		}
		want(w, "reads", w.box.called("outgoing"), 0)
		want(w, "writes", w.box.called("begin")+w.box.called("end"), 0)
		w.post("lease-7", "C1")
		time.Sleep(time.Hour)
		synctest.Wait()
		want(w, "goroutines after one was sent", ours() > before, false)
		want(w, "reads after one was sent", w.box.called("outgoing"), 1)
	})
}

// ours counts the goroutines that run a method of this package: the runtime and the
// tests before have some, too, that come and go when they like.
func ours() (n int) {
	stacks := make([]byte, 1<<22)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(stack, "leasehold/delivery/outbound.(*") {
			n++
		}
	}
	return n
}

func TestOutcomes(t *testing.T) {
	bubble(t, "what surely was not sent is tried again, less and less often, until it is", func(w *world) {
		w.platform.answer = func(_ channel.Message, n int) (time.Duration, bool, error) {
			if n < 8 {
				return 0, false, channel.NotSent(errors.New("reset"))
			}
			return 0, true, nil
		}
		w.live("a")
		first, second := w.post("a", "C1"), w.post("a", "C1")
		time.Sleep(500 * time.Millisecond)
		want(w, "attempts", w.is(first, Queued, "reset").attempts, 1)
		time.Sleep(5 * time.Minute)
		// 0.8 of 1, 2, 4, … 60 s
		want(w, "tries", fmt.Sprint(w.platform.times("out_1")), "[0s 800ms 2.4s 5.6s 12s 24.8s 50.4s 1m38.4s 2m26.4s]")
		want(w, "attempts", w.is(first, Sent, "").attempts, 9)
		want(w, "the one behind it waited", w.platform.times("out_2")[0] >= 146400*time.Millisecond, true)
		_ = second
	})

	bubble(t, "a new connection is tried at once", func(w *world) {
		w.platform.answer = func(channel.Message, int) (time.Duration, bool, error) {
			return 0, false, channel.NotSent(errors.New("reset"))
		}
		term := w.live("a")
		seq := w.post("a", "C1")
		time.Sleep(60 * time.Second)
		w.m.Live(term, nil)
		time.Sleep(time.Second)
		other := &platform{}
		term.Run++
		w.m.Live(term, other)
		synctest.Wait()
		w.is(seq, Sent, "")
		want(w, "when", fmt.Sprint(other.times("out_1")), "[1m1s]")
	})

	bubble(t, "a rate limit is waited for and is no attempt; other conversations go on", func(w *world) {
		w.platform.answer = func(m channel.Message, n int) (time.Duration, bool, error) {
			if m.ID == "out_1" && n == 0 {
				return 0, false, channel.RateLimited(errors.New("slow down"), 90*time.Second)
			}
			return 0, true, nil
		}
		term := w.live("a")
		first, behind := w.post("a", "C1"), w.post("a", "C1")
		other := w.post("a", "C2")
		time.Sleep(time.Second)
		want(w, "attempts", w.is(first, Queued, "slow down").attempts, 0)
		w.is(behind, Queued, "")
		w.is(other, Sent, "")
		w.m.Live(term, nil)
		term.Run++
		w.m.Live(term, w.platform) // the limit is the account's, not the connection's
		time.Sleep(88 * time.Second)
		w.is(first, Queued, "slow down")
		time.Sleep(2 * time.Second)
		want(w, "attempts", w.is(first, Sent, "").attempts, 1)
		w.is(behind, Sent, "")
	})

	bubble(t, "what the platform refuses is refused in its words, and the next one goes", func(w *world) {
		w.platform.answer = func(m channel.Message, _ int) (time.Duration, bool, error) {
			if m.ID == "out_1" {
				return 0, false, channel.Refused(errors.New("not_in_channel " + strings.Repeat("é", maxWords)))
			}
			return 0, true, nil
		}
		w.live("a")
		first, second := w.post("a", "C1"), w.post("a", "C1")
		time.Sleep(time.Hour)
		r := w.box.row(first)
		want(w, "state", r.state, Refused)
		want(w, "words", strings.HasPrefix(r.words, "not_in_channel é") && len(r.words) <= maxWords+3, true)
		want(w, "tries", len(w.platform.times("out_1")), 1)
		w.is(second, Sent, "")
	})

	for _, taken := range []bool{true, false} {
		bubble(t, fmt.Sprintf("a lost answer leaves the message unknown, and it is never tried again (taken: %v)", taken), func(w *world) {
			w.platform.answer = func(m channel.Message, _ int) (time.Duration, bool, error) {
				if m.ID == "out_1" {
					return 0, taken, errors.New("connection reset")
				}
				return 0, true, nil
			}
			w.live("a")
			first, second := w.post("a", "C1"), w.post("a", "C1")
			time.Sleep(time.Hour)
			w.is(first, Unknown, "connection reset")
			want(w, "tries", len(w.platform.times("out_1")), 1)
			w.is(second, Sent, "")
		})
	}

	bubble(t, "where the platform drops the second of two, a lost answer is tried again", func(w *world) {
		w.platform.answer = func(_ channel.Message, n int) (time.Duration, bool, error) {
			if n == 0 {
				return 0, true, errors.New("connection reset")
			}
			return 0, false, nil
		}
		w.live("a")
		seq := w.post("a", "C1")
		time.Sleep(time.Minute)
		w.is(seq, Sent, "")
		want(w, "tries", len(w.platform.times("out_1")), 2)
	}, idempotent)

	bubble(t, "what cannot be sent in time expires, also behind one that may wait longer", func(w *world) {
		term := w.box.grant("a")
		w.m.Hold(term)
		long, short := w.post("a", "C1", expiry(time.Hour)), w.post("a", "C1", expiry(time.Minute))
		time.Sleep(time.Minute + time.Millisecond)
		w.is(short, Expired, "it could not be sent in time")
		w.is(long, Queued, "")
		time.Sleep(time.Hour)
		w.is(long, Expired, "it could not be sent in time")
		w.m.Live(term, w.platform)
		synctest.Wait()
		want(w, "sent", len(w.platform.got()), 0)
	})

	bubble(t, "a rate limit that is longer than the message's time lets it expire", func(w *world) {
		w.platform.answer = func(channel.Message, int) (time.Duration, bool, error) {
			return 0, false, channel.RateLimited(errors.New("slow down"), time.Hour)
		}
		w.live("a")
		seq := w.post("a", "C1")
		time.Sleep(DefaultExpiry + time.Second)
		w.is(seq, Expired, "it could not be sent in time")
		want(w, "tries", len(w.platform.times("out_1")), 1)
	})

	bubble(t, "a send that never ends is broken off and unknown", func(w *world) {
		w.platform.answer = func(channel.Message, int) (time.Duration, bool, error) { return 10 * time.Hour, true, nil }
		w.live("a")
		seq := w.post("a", "C1", expiry(20*time.Hour))
		time.Sleep(time.Hour)
		want(w, "state", w.box.row(seq).state, Unknown)
	})
}

func TestLeases(t *testing.T) {
	for _, when := range []string{"begin", "end"} {
		bubble(t, "a lease that is lost before "+when+" ends it: nothing more is sent", func(w *world) {
			w.live("a")
			synctest.Wait()
			w.box.breaks(func(op string) faultMode {
				if op == when {
					t := w.box.leases["a"]
					t.Epoch, t.Owner = t.Epoch+1, "another"
					w.box.leases["a"] = t
				}
				return works
			})
			first, second := w.post("a", "C1"), w.post("a", "C1")
			time.Sleep(time.Hour)
			sent := map[string]int{"begin": 0, "end": 1}[when]
			want(w, "sent", len(w.platform.got()), sent)
			want(w, "state", w.box.row(first).state, map[string]State{"begin": Queued, "end": Sending}[when])
			w.is(second, Queued, "")
			want(w, "writes tried", w.box.called("begin"), 1)
		})
	}

	bubble(t, "what the holder before was sending is unknown and not sent; what waited is", func(w *world) {
		sending := func(r *fakeRow) { r.state, r.epoch = Sending, 0 }
		first, second := w.box.post("a", "C1", sending), w.box.post("a", "C1")
		w.live("a")
		time.Sleep(time.Second)
		w.is(first, Unknown, LostWithHolder)
		w.is(second, Sent, "")
		want(w, "sent", fmt.Sprint(w.platform.got()), "[out_2]")
	})

	bubble(t, "where the platform drops the second of two it is sent again, at its place", func(w *world) {
		sending := func(r *fakeRow) { r.state, r.epoch = Sending, 0 }
		first, second := w.box.post("a", "C1", sending), w.box.post("a", "C1")
		w.live("a")
		time.Sleep(time.Second)
		w.is(first, Sent, "")
		w.is(second, Sent, "")
		want(w, "sent", fmt.Sprint(w.platform.got()), "[out_1 out_2]")
	}, idempotent)

	bubble(t, "a drop lets what is on its way end, and sends nothing new", func(w *world) {
		w.platform.answer = func(channel.Message, int) (time.Duration, bool, error) { return 300 * time.Millisecond, true, nil }
		term := w.live("a")
		first, second := w.post("a", "C1"), w.post("a", "C1")
		synctest.Wait()
		began := time.Now()
		w.m.Drop(w.Context(), term)
		want(w, "took", time.Since(began), 300*time.Millisecond)
		w.is(first, Sent, "")
		w.is(second, Queued, "")
		writes := w.box.called("begin") + w.box.called("end")
		time.Sleep(time.Hour)
		want(w, "writes after it", w.box.called("begin")+w.box.called("end"), writes)
	})

	bubble(t, "what is broken off before it was sent waits as it did", func(w *world) {
		w.box.lag = 2 * time.Second
		term := w.live("a")
		seq := w.post("a", "C1")
		synctest.Wait()
		w.m.Drop(w.Context(), term)
		time.Sleep(time.Minute)
		want(w, "attempts", w.is(seq, Queued, "").attempts, 0)
		want(w, "sent", len(w.platform.got()), 0)
	})

	bubble(t, "what may have been sent, and is not sent again in time, is unknown", func(w *world) {
		seq := w.box.post("a", "C1", func(r *fakeRow) { r.state, r.epoch = Sending, 0 })
		w.m.Hold(w.box.grant("a"))
		time.Sleep(DefaultExpiry + time.Minute)
		want(w, "state", w.box.row(seq).state, Unknown)
	}, idempotent)

	bubble(t, "a drop breaks off what takes long; then it is unknown", func(w *world) {
		w.platform.answer = func(channel.Message, int) (time.Duration, bool, error) { return time.Minute, true, nil }
		term := w.live("a")
		seq := w.post("a", "C1")
		synctest.Wait()
		began := time.Now()
		w.m.Drop(w.Context(), term)
		want(w, "took", time.Since(began), dropGrace)
		w.is(seq, Unknown, "broken off: context canceled")
	})

	bubble(t, "a drop does not wait longer than it may for a store that takes nothing", func(w *world) {
		term := w.live("a")
		synctest.Wait()
		w.box.breaks(func(op string) faultMode {
			if op == "end" {
				return fails
			}
			return works
		})
		seq := w.post("a", "C1")
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		w.m.Drop(ctx, term)
		want(w, "took", time.Since(began), 2*time.Second)
		w.box.breaks(nil)
		time.Sleep(time.Hour)
		want(w, "state", w.box.row(seq).state, Sending)
		w.live("a") // the next holder
		time.Sleep(time.Second)
		w.is(seq, Unknown, LostWithHolder)
	})

	bubble(t, "the end of the process breaks off and stores what is known", func(w *world) {
		w.platform.answer = func(m channel.Message, _ int) (time.Duration, bool, error) {
			return time.Minute, m.ID == "out_1", nil
		}
		w.live("a")
		first, second := w.post("a", "C1"), w.post("a", "C1")
		synctest.Wait()
		w.stop()
		w.is(first, Unknown, "broken off: context canceled")
		w.is(second, Queued, "")
	})
}

func TestStoreFails(t *testing.T) {
	for _, op := range []string{"laden", "outgoing", "begin", "end"} {
		for _, mode := range []faultMode{fails, persisted} {
			bubble(t, fmt.Sprintf("%s fails (%d): each message is sent once, in order", op, mode), func(w *world) {
				n := 0
				w.box.breaks(func(o string) faultMode {
					if n++; o == op && n%2 == 0 {
						return mode
					}
					return works
				})
				for range 10 {
					w.box.post("a", "C1")
				}
				w.live("a")
				time.Sleep(5 * time.Minute)
				w.box.breaks(nil)
				time.Sleep(5 * time.Minute)
				for seq := range int64(10) {
					w.is(seq+1, Sent, "")
				}
				ids := w.platform.got()
				want(w, "sent", len(ids), 10)
				inOrder(w, func(string) string { return "C1" })
			})
		}
	}

	bubble(t, "a message that was put back without an answer keeps its place, though the store cannot be read", func(w *world) {
		w.platform.answer = func(m channel.Message, n int) (time.Duration, bool, error) {
			if m.ID == "out_1" && n == 0 {
				return 0, false, channel.NotSent(errors.New("reset"))
			}
			return 0, true, nil
		}
		w.live("a")
		time.Sleep(time.Second) // the look that a grant makes is over
		lost := false
		w.box.breaks(func(op string) faultMode {
			switch {
			case op == "end" && !lost:
				lost = true
				return persisted
			case op == "outgoing" && lost:
				return fails
			}
			return works
		})
		first, second := w.box.post("a", "C1"), w.box.post("a", "C1")
		time.Sleep(time.Minute)
		for range 1000 {
			w.m.Wake("a")
			time.Sleep(60 * time.Millisecond)
		}
		want(w, "sent while the store cannot be read", len(w.platform.got()), 0)
		if n := w.box.called("outgoing"); n > 40 {
			w.Errorf("got %d reads in two minutes of failures, want them to be spaced", n)
		}
		w.box.breaks(nil)
		time.Sleep(time.Minute)
		w.is(first, Sent, "")
		w.is(second, Sent, "")
		want(w, "order", fmt.Sprint(w.platform.got()), "[out_1 out_2]")
	})

	bubble(t, "while the store takes nothing, nothing more is sent, and nothing twice", func(w *world) {
		w.live("a")
		synctest.Wait()
		w.box.breaks(func(op string) faultMode {
			if op == "end" || op == "begin" && len(w.platform.got()) > 0 {
				return fails
			}
			return works
		})
		for range 5 {
			w.post("a", "C1")
			w.post("a", "C2")
		}
		time.Sleep(10 * time.Minute)
		if n := len(w.platform.got()); n < 1 || n > 2 {
			w.Errorf("got %d sent, want those that were noted before", n)
		}
		w.box.breaks(nil)
		time.Sleep(time.Minute)
		ids := w.platform.got()
		slices.Sort(ids)
		want(w, "sent", len(slices.Compact(ids)), 10)
		want(w, "sent in all", len(w.platform.got()), 10)
	})
}
