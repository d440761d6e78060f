package outbound

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"leasehold/channel"
)

// sweepFrom is how many conversations a throttle knows before it looks for those that
// it may forget: a few kilobytes.
const sweepFrom = 64

// throttle keeps what one lease sends within the limits of its platform, and to what
// the platform says when it is asked for too much. It is in memory: whoever takes the
// lease over begins with a rest behind him, and then hears it from the platform. A
// conversation that has rested is forgotten, since it is like one never seen. Its time
// is that of the monotonic clock: a clock that is set back holds nobody up.
type throttle struct {
	mu       sync.Mutex // guards what follows
	limits   channel.Limits
	accounts map[string]*account // by installation
}

// account is one installation: a rider has the limits to itself.
type account struct {
	all   gate
	chats map[string]*gate
	sweep int // chats are looked through when there are so many
}

// gate is what one limit lets through.
type gate struct {
	bucket *rate.Limiter // nil: there is no limit
	shut   time.Time     // the platform asked to wait until then
}

func newGate(r channel.Rate) gate {
	if r.N == 0 {
		return gate{}
	}
	perSecond, burst := r.Spread()
	return gate{bucket: rate.NewLimiter(rate.Limit(perSecond), burst)}
}

// wait is how long nothing goes through; told: because the platform said so.
func (g *gate) wait(now time.Time) (wait time.Duration, told bool) {
	switch {
	case g == nil:
		return 0, false
	case now.Before(g.shut):
		return g.shut.Sub(now), true
	case g.bucket == nil:
		return 0, false
	}
	lacks := 1 - g.bucket.TokensAt(now)
	if lacks <= 0 {
		return 0, false
	}
	return max(time.Millisecond, time.Duration(math.Ceil(lacks/float64(g.bucket.Limit())*float64(time.Second)))), false
}

// rested reports whether nothing is left of what went through.
func (g *gate) rested(now time.Time) bool {
	return !now.Before(g.shut) && (g.bucket == nil || g.bucket.TokensAt(now) >= float64(g.bucket.Burst()))
}

// set takes the limits of a connection. Those that have not changed go on as they are.
func (t *throttle) set(l channel.Limits) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.limits == l {
		return
	}
	t.limits = l
	for _, a := range t.accounts {
		a.all.bucket = newGate(l.All).bucket
		for _, c := range a.chats {
			c.bucket = newGate(l.Chat).bucket
		}
	}
}

// fair reports whether conversations wait for one another.
func (t *throttle) fair() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.limits.All.N > 0
}

// take takes one message into a conversation, or of a call, whose chat is "", the call;
// or it returns how long that must wait, and for what.
func (t *throttle) take(installation, chat string) (wait time.Duration, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if wait, why = t.look(installation, chat, now); wait > 0 {
		return wait, why
	}
	for _, g := range t.gates(installation, chat, now) {
		if g.bucket != nil {
			g.bucket.AllowN(now, 1)
		}
	}
	return 0, ""
}

// waits is take that takes nothing.
func (t *throttle) waits(installation, chat string) (wait time.Duration, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.look(installation, chat, time.Now())
}

func (t *throttle) look(installation, chat string, now time.Time) (wait time.Duration, why string) {
	a := t.accounts[installation]
	if a == nil {
		return 0, ""
	}
	wait, told := a.all.wait(now)
	own, toldOwn := a.chats[chat].wait(now)
	switch {
	case wait == 0 && own == 0:
		return 0, ""
	case wait >= own && told:
		return wait, fmt.Sprintf("the platform, which asked %s to send nothing until %s", installation, clock(a.all.shut))
	case wait >= own:
		return wait, fmt.Sprintf("the limit of %s: %s", installation, t.limits.All)
	case toldOwn:
		return own, "the platform, which asked to send nothing into this conversation until " + clock(a.chats[chat].shut)
	default:
		return own, fmt.Sprintf("the limit of %s: %s in one conversation", installation, t.limits.Chat)
	}
}

func clock(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// gates are those that a message passes.
func (t *throttle) gates(installation, chat string, now time.Time) []*gate {
	var all []*gate
	if t.limits.All.N > 0 {
		all = append(all, &t.account(installation).all)
	}
	if t.limits.Chat.N > 0 && chat != "" {
		all = append(all, t.account(installation).chat(chat, t.limits.Chat, now))
	}
	return all
}

func (t *throttle) account(installation string) *account {
	a := t.accounts[installation]
	if a == nil {
		a = &account{all: newGate(t.limits.All), chats: map[string]*gate{}, sweep: sweepFrom}
		if t.accounts == nil {
			t.accounts = map[string]*account{}
		}
		t.accounts[installation] = a
	}
	return a
}

// chat is the gate of a conversation. When there are twice as many as the last time
// that all were needed, those that have rested go: a look costs little for each.
func (a *account) chat(chat string, r channel.Rate, now time.Time) *gate {
	if c := a.chats[chat]; c != nil {
		return c
	}
	if len(a.chats) >= a.sweep {
		for id, c := range a.chats {
			if c.rested(now) {
				delete(a.chats, id)
			}
		}
		a.sweep = max(sweepFrom, 2*len(a.chats))
	}
	c := newGate(r)
	a.chats[chat] = &c
	return &c
}

// shut notes that the platform wants nothing into a conversation, or with all from the
// installation, for so long.
func (t *throttle) shut(installation, chat string, all bool, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	a := t.account(installation)
	g := &a.all
	if !all && chat != "" {
		g = a.chat(chat, t.limits.Chat, now)
	}
	if until := now.Add(wait); until.After(g.shut) {
		g.shut = until
	}
}
