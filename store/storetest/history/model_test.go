package history

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// The rules themselves, by histories that are made by hand: each call is over before
// the next one begins, but for those whose outcome is unknown.
func TestModel(t *testing.T) {
	const a, b = 0, 1
	opens := func(session int) call {
		return call{in: input{kind: open, session: session, old: nobody, since: 1000}}
	}
	claims := func(session int, epoch, run int64) call {
		return call{in: input{kind: claim, session: session}, out: output{epoch: epoch, run: run}}
	}
	begins := func(session int, epoch, run int64, cursor int) call {
		return call{in: input{kind: begin, session: session, epoch: epoch}, out: output{run: run, cursor: cursor}}
	}
	accepts := func(session int, epoch, run int64, event int) call {
		return call{in: input{kind: accept, session: session, epoch: epoch, run: run, event: event}}
	}
	releases := func(session int, epoch int64) call {
		return call{in: input{kind: release, session: session, epoch: epoch}}
	}
	lists := func(owner int, alive bool, epoch int64) call {
		return call{in: input{kind: list}, out: output{owner: owner, alive: alive, epoch: epoch}}
	}
	ends := call{in: input{kind: end, session: a}}
	reaps := func(count int, until int64) call {
		return call{in: input{kind: reap, until: until}, out: output{count: count}}
	}
	told := func(c call, a answer) call { c.out.answer = a; return c }
	expired := 1000 + ttl.Milliseconds()

	for _, c := range []struct {
		name  string
		loose bool
		right bool
		calls []call
	}{
		{"a lease that is passed on", false, true, []call{opens(a), opens(b), claims(a, 5, 0), begins(a, 5, 1, 0), accepts(a, 5, 1, 7), releases(a, 5), claims(b, 6, 1), begins(b, 6, 2, 7)}},
		{"a grant of what is held", false, false, []call{opens(a), opens(b), claims(a, 5, 0), claims(b, 6, 0)}},
		{"a grant under an epoch that was", false, false, []call{opens(a), claims(a, 5, 0), releases(a, 5), claims(a, 5, 0)}},
		{"a free lease that is refused", false, false, []call{opens(a), told(claims(a, 0, 0), no)}},
		{"one that may be passed over", true, true, []call{opens(a), told(claims(a, 0, 0), no)}},
		{"a stale release that frees", false, false, []call{opens(a), claims(a, 5, 0), releases(a, 5), claims(a, 6, 0), releases(a, 5)}},
		{"an accept of a former owner", false, false, []call{opens(a), opens(b), claims(a, 5, 0), begins(a, 5, 1, 0), ends, claims(b, 6, 1), accepts(a, 5, 1, 7)}},
		{"an accept of a former term", false, false, []call{opens(a), claims(a, 5, 0), begins(a, 5, 1, 0), begins(a, 5, 2, 0), accepts(a, 5, 1, 7)}},
		{"an accept of a session that ended", false, false, []call{opens(a), claims(a, 5, 0), begins(a, 5, 1, 0), ends, accepts(a, 5, 1, 7)}},
		{"an accept that its successor's cursor lacks", false, false, []call{opens(a), claims(a, 5, 0), begins(a, 5, 1, 0), accepts(a, 5, 1, 7), begins(a, 5, 2, 0)}},
		{"a fence that holds and refuses", false, false, []call{opens(a), claims(a, 5, 0), told(begins(a, 5, 1, 0), no)}},
		{"a lost grant that is listed, and released", false, true, []call{opens(a), told(claims(a, 0, 0), unknown), lists(a, true, 9), releases(a, 9), lists(nobody, false, 9)}},
		{"a lost grant that was none", false, true, []call{opens(a), opens(b), told(claims(a, 0, 0), unknown), claims(b, 9, 0)}},
		{"a lost grant under an epoch that was", false, false, []call{opens(b), claims(b, 5, 0), releases(b, 5), opens(a), told(claims(a, 0, 0), unknown), lists(a, true, 5)}},
		{"a renewal of a session that ended", false, false, []call{opens(a), ends, {in: input{kind: renew, session: a, since: 1000}}}},
		{"a session that was reaped in time", false, true, []call{opens(a), claims(a, 5, 0), reaps(1, expired), lists(a, false, 5)}},
		{"one that was reaped too early", false, false, []call{opens(a), claims(a, 5, 0), reaps(1, expired-1)}},
		{"one that lives after it was reaped", false, false, []call{opens(a), claims(a, 5, 0), reaps(1, expired), lists(a, true, 5)}},
		{"one of two was reaped", false, true, []call{opens(a), opens(b), claims(a, 5, 0), reaps(1, expired), claims(b, 6, 0)}},
		{"the other of the two", false, false, []call{opens(a), opens(b), claims(a, 5, 0), reaps(1, expired), {in: input{kind: renew, session: a, since: 1000}}, claims(b, 6, 0)}},
		{"a claim that saw its session alive", true, true, []call{opens(a), ends, claims(a, 5, 0)}},
		{"one that did not", false, false, []call{opens(a), ends, claims(a, 5, 0)}},
		{"a claim for a session of which it was known that it ended", true, false, []call{opens(a), ends, {in: input{kind: claim, session: a, late: true}, out: output{epoch: 5}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{h: Harness{Loose: c.loose}}
			for n, made := range c.calls {
				made.from, made.to = 1+2*time.Duration(n), 2+2*time.Duration(n)
				if made.out.answer == unknown {
					made.to = 0
				}
				w.history = append(w.history, made)
			}
			if got := porcupine.CheckOperations(w.model(), w.of(0)); got != c.right {
				t.Errorf("got an order: %v, want %v", got, c.right)
			}
		})
	}
}
