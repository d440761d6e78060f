package delivery

import (
	"container/heap"
	"time"
)

// instant is a point of the wall clock in milliseconds. Go's monotonic clock
// stands still while a machine sleeps; a retry is due all the same when it wakes.
type instant int64

func now() instant { return at(time.Now()) }

func at(t time.Time) instant {
	if t.IsZero() {
		return 0
	}
	return instant(t.UnixMilli())
}

func (i instant) add(d time.Duration) instant { return i + instant(d.Milliseconds()) }
func (i instant) time() time.Time             { return time.UnixMilli(int64(i)).UTC() }

// alarm is something to do at an instant. It stands in at most one place of the
// heap, so that setting it again moves it.
type alarm struct {
	at   instant
	slot int // its index + 1; 0 = not set
	fire func()
}

// alarms are all that are set, the next one first.
type alarms struct {
	heap   alarmHeap
	sooner func() // called when another alarm has become the next one
}

// set makes f run at the given instant instead of whatever the alarm was set to.
func (a *alarms) set(l *alarm, when instant, f func()) {
	l.at, l.fire = when, f
	if l.slot > 0 {
		heap.Fix(&a.heap, l.slot-1)
	} else {
		heap.Push(&a.heap, l)
	}
	if a.heap[0] == l {
		a.sooner()
	}
}

// stop unsets the alarm, if it is set.
func (a *alarms) stop(l *alarm) {
	if l.slot > 0 {
		heap.Remove(&a.heap, l.slot-1)
	}
}

// due runs what is due at t and returns the next instant; false: none is set.
func (a *alarms) due(t instant) (next instant, ok bool) {
	for len(a.heap) > 0 {
		l := a.heap[0]
		if l.at > t {
			return l.at, true
		}
		f := l.fire
		a.stop(l)
		f()
	}
	return 0, false
}

type alarmHeap []*alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].slot, h[j].slot = i+1, j+1
}

func (h *alarmHeap) Push(x any) {
	l := x.(*alarm)
	*h = append(*h, l)
	l.slot = len(*h)
}

func (h *alarmHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	l.slot, l.fire = 0, nil
	return l
}
