package delivery

import (
	"fmt"
	"slices"
	"strings"
)

// laneKey is what stays in order within a window.
type laneKey struct {
	installation, conversation, thread string
	seq                                int64 // of its only event, where there is no order
}

func keyOf(i *Item, o Order) laneKey {
	switch o {
	case PerInstallation:
		return laneKey{installation: i.Installation}
	case Unordered:
		return laneKey{seq: i.Seq}
	default:
		return laneKey{installation: i.Installation, conversation: i.Conversation, thread: i.Thread}
	}
}

// entry is a delivery that waits, without its body.
type entry struct {
	lane      *lane
	seq       int64
	webhookID string
	attempts  int
	due       instant // not before
	accepted  instant
	replay    bool
	marking   bool   // its outcome is not stored yet; until then it is not tried again
	noted     string // the reason that was last stored; "" = not known
	absent    bool   // was not in memory when its attempts were given back: it only keeps its place
	back      int    // attempts to give back once the store has taken the last mark
	probes    int    // failures as a probe
	event     *Event // read ahead; nil = not
	pick      *pick  // in flight; nil = not
	flying    bool   // in flight, until its target was judged
	alone     bool   // was in a batch that was not taken: it goes by itself
}

// lane is a row of deliveries that go one at a time, in order of seq.
type lane struct {
	window  *window
	key     laneKey
	entries []*entry // waiting, in order; what is in flight is not among them
	flying  *entry   // the first of those in flight, of a batch there may be several; nil = none
	cut     int64    // rows from here on are not in memory; 0 = all are
	refused uint64   // the pass that had no room for one of its rows
	ready   bool     // stands in its window's queue
	dying   bool     // stands in the dispatcher's queue of those whose head is too old
	held    bool     // stands among those that wait for what is read again
	alarm   alarm    // for when the head is due
}

// insert puts e where its seq belongs: at the end, but for one that comes back.
func (l *lane) insert(e *entry) {
	e.lane = l
	i := len(l.entries)
	for i > 0 && l.entries[i-1].seq > e.seq {
		i--
	}
	l.entries = slices.Insert(l.entries, i, e)
	l.window.count(1)
}

// take removes the entry at index i.
func (l *lane) take(i int) *entry {
	e := l.entries[i]
	l.entries[i] = nil
	if i == 0 {
		l.entries = l.entries[1:]
	} else {
		l.entries = slices.Delete(l.entries, i, i+1)
	}
	l.window.count(-1)
	return e
}

// drop removes e if it waits here.
func (l *lane) drop(e *entry) {
	if i := slices.Index(l.entries, e); i >= 0 {
		l.take(i)
	}
}

// trim lets go of the tail beyond the first n, which the store still has. It
// keeps what the store does not know yet.
func (l *lane) trim(n int, pass uint64) {
	for i := n; i < len(l.entries); i++ {
		if l.entries[i].marking {
			n = i + 1
		}
	}
	if n >= len(l.entries) {
		return
	}
	l.cut, l.refused = l.entries[n].seq, pass
	for _, e := range l.entries[n:] {
		l.window.hold.d.forget(e)
	}
	l.window.count(n - len(l.entries))
	l.entries = slices.Clone(l.entries[:n]) // the tail's memory goes
}

// short reports whether the lane runs out while the store has more of it, and
// there is room.
func (l *lane) short() bool {
	w := l.window
	room := w.n < w.size()*3/4 || w.share() > 0
	return l.cut != 0 && room && len(l.entries) <= min(refillAt, w.share()/2)
}

// idle reports whether nothing is known of the lane but its name.
func (l *lane) idle() bool { return len(l.entries) == 0 && l.flying == nil && l.cut == 0 }

// check puts the lane where it belongs now: among those that can go, among those
// whose head is too old, or asleep until its head is due.
func (l *lane) check(now instant) {
	d := l.window.hold.d
	if l.flying != nil || len(l.entries) == 0 || l.entries[0].marking {
		d.alarms.stop(&l.alarm)
		l.leave()
		return
	}
	head := l.entries[0]
	switch {
	case l.window.hold.missing(head.seq):
		d.alarms.stop(&l.alarm)
		l.window.hold.wait(l)
	case l.old(now):
		d.alarms.stop(&l.alarm)
		if !l.dying {
			l.dying = true
			d.expired.push(l)
			d.ring(d.dispatch)
		}
	case head.due > now:
		wake := head.due
		if dies := l.window.expiry(head, now); dies != 0 {
			wake = min(wake, dies)
		}
		d.alarms.set(&l.alarm, wake, l.rise)
	default:
		d.alarms.stop(&l.alarm)
		l.window.enqueue(l)
	}
}

func (l *lane) rise() { l.check(now()) }

// can reports whether the head may go, as far as its lane is concerned.
func (l *lane) can(now instant) bool {
	return l.flying == nil && len(l.entries) > 0 && l.free(l.entries[0], now)
}

// free reports whether an entry may go when nothing in memory is before it.
func (l *lane) free(e *entry, now instant) bool {
	return !e.marking && e.due <= now && !l.window.hold.missing(e.seq)
}

// old reports whether the head is to die of its age now.
func (l *lane) old(now instant) bool {
	if l.flying != nil || len(l.entries) == 0 || l.entries[0].marking || l.window.hold.missing(l.entries[0].seq) {
		return false
	}
	dies := l.window.expiry(l.entries[0], now)
	return dies != 0 && dies <= now
}

// tooOld says that the head dies of age, and what kept it waiting, as far as it is known.
func (l *lane) tooOld() string {
	t, head := l.window.target, l.entries[0]
	reason := "older than " + strings.NewReplacer("m0s", "m", "h0m0s", "h").Replace(t.MaxAge.String())
	switch {
	case head.noted != "":
		return reason + "; what kept it: " + head.noted
	case t.state != Closed:
		return reason + "; what kept it: " + t.reason
	case head.attempts > 0:
		return reason + fmt.Sprintf("; it failed %d times", head.attempts)
	}
	return reason
}

// leave lets the window forget a lane of which nothing is left.
func (l *lane) leave() {
	if l.idle() && !l.ready && !l.dying && l.window.lanes[l.key] == l {
		l.window.hold.d.alarms.stop(&l.alarm)
		delete(l.window.lanes, l.key)
	}
}
