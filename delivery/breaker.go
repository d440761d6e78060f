package delivery

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"leasehold/channel"
)

// The defaults of a Breaker.
const (
	// DefaultLoopLimit is what most platforms let one sender say in one conversation in a
	// minute, and more than people say.
	DefaultLoopLimit = 60
	// DefaultLoopTurns is more than two programs that mean to work together need.
	DefaultLoopTurns = 10
	// DefaultLoopQuiet outlasts a program that thinks about its next answer.
	DefaultLoopQuiet = 5 * time.Minute
)

// Breaker ends the loop of a bot that answers itself, or of two that answer each
// other: what is answered in a conversation is refused once it went round too often,
// until nobody has tried for a while. Conversations know nothing of each other. The
// zero value has the defaults; it keeps a few words for each conversation in which
// something was answered lately, in memory only, and is safe for concurrent use.
type Breaker struct {
	Limit int           // answers to what was heard within one minute; DefaultLoopLimit
	Turns int           // answers in a row to bots, ourselves among them; DefaultLoopTurns
	Quiet time.Duration // without a try, until it goes on; DefaultLoopQuiet
	// Told is told of each conversation that is stopped, and that goes on again; nil =
	// nobody is. It must not block.
	Told func(l Loop, stopped bool)

	mu    sync.Mutex // guards talks
	talks map[talkKey]*talk
}

// Loop is a conversation in which nothing is answered any more.
type Loop struct {
	Installation, Conversation string
	Reason                     string
	Since                      time.Time
}

type talkKey struct{ installation, conversation string }

// talk is what was answered in a conversation lately.
type talk struct {
	minute  int64     // in which what is counted was heard, since 1970
	n       int       // answers to that
	turns   int       // answers in a row to bots
	last    time.Time // when somebody tried to answer
	stopped *Loop     // nil = it is not
}

// Answer counts an answer to an event of an installation, which was accepted at that
// time, and says why there must be none; "" = there may be.
func (b *Breaker) Answer(installation string, e *channel.Event, accepted time.Time) (why string) {
	heard := e.Time // what was missed for an hour comes at once, and is no loop
	if heard.IsZero() || heard.After(accepted) {
		heard = accepted
	}
	l, told := b.count(talkKey{installation, e.Conversation.ID}, heard.Unix()/60, e.Sender.Bot || e.Sender.Self)
	if told && b.Told != nil {
		b.Told(l, l.Reason != "")
	}
	return l.Reason
}

// count returns what the conversation then is, and whether that is news.
func (b *Breaker) count(key talkKey, minute int64, bot bool) (l Loop, news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	t := b.talk(key, now)
	resumes := t.stopped != nil && b.rested(t, now)
	if resumes {
		l = Loop{Installation: key.installation, Conversation: key.conversation, Since: t.stopped.Since}
		*t = talk{}
	}
	t.last = now
	if t.stopped != nil {
		return *t.stopped, false
	}
	switch {
	case minute > t.minute:
		t.minute, t.n = minute, 1
	case minute == t.minute:
		t.n++
	}
	t.turns++
	if !bot {
		t.turns = 0
	}
	var reason string
	switch limit, turns := orDefault(b.Limit, DefaultLoopLimit), orDefault(b.Turns, DefaultLoopTurns); {
	case t.turns > turns:
		reason = fmt.Sprintf("more than %d answers in a row to bots: a loop?", turns)
	case t.n > limit:
		reason = fmt.Sprintf("more than %d answers in a minute: a loop?", limit)
	default:
		return l, resumes
	}
	t.stopped = &Loop{Installation: key.installation, Conversation: key.conversation, Reason: reason, Since: now}
	return *t.stopped, true
}

// talk finds what is known of a conversation. b.mu is held.
func (b *Breaker) talk(key talkKey, now time.Time) *talk {
	if t := b.talks[key]; t != nil {
		return t
	}
	const many = 1024 // then those that rest are forgotten, before there are more
	if len(b.talks) >= many && len(b.talks)%many == 0 {
		for k, t := range b.talks {
			if b.rested(t, now) {
				delete(b.talks, k)
			}
		}
	}
	if b.talks == nil {
		b.talks = map[talkKey]*talk{}
	}
	t := &talk{last: now}
	b.talks[key] = t
	return t
}

// rested reports whether nobody has tried to answer for so long that what was counted
// is of no use.
func (b *Breaker) rested(t *talk, now time.Time) bool {
	return now.Sub(t.last) >= orDefault(b.Quiet, DefaultLoopQuiet)
}

// Stopped are the conversations that are stopped now, the oldest first.
func (b *Breaker) Stopped() (all []Loop) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, t := range b.talks {
		if t.stopped != nil && !b.rested(t, now) {
			all = append(all, *t.stopped)
		}
	}
	slices.SortFunc(all, func(x, y Loop) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Installation, y.Installation), cmp.Compare(x.Conversation, y.Conversation))
	})
	return all
}
