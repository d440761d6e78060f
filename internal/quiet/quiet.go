// Package quiet makes news of what happens, and little of it.
//
// A trouble that passes soon is no news. One that lasts is told once, and its end
// is told because its beginning was. What happens again and again is told the first
// time, and then as a count. What is well costs nothing: only troubles are kept.
//
// It does not know what it tells of, nor to whom.
package quiet

import (
	"context"
	"sync"
	"time"
)

// Desk is where it is decided what is news. Its methods do not block, and may be
// called with any lock held; what is to be told is told by Run, in order.
type Desk struct {
	after time.Duration // how long a trouble lasts before it is news
	every time.Duration // how often the same is told at most
	wake  chan struct{}

	mu       sync.Mutex // guards what follows
	news     []func()
	troubles map[string]*trouble
	repeats  map[string]*repeat
	lasting  []*trouble // in the order in which they become news; some are over
	counting []*repeat  // in the order in which their counts are told
}

type trouble struct {
	key         string
	since       time.Time
	told, grave bool
	tell        func(since time.Time)
	over        bool
}

type repeat struct {
	key  string
	due  time.Time
	n    int // since it was last told
	tell func(n int)
}

// New makes a Desk that keeps its news until Run.
func New(after, every time.Duration) *Desk {
	return &Desk{
		after: after, every: every, wake: make(chan struct{}, 1),
		troubles: map[string]*trouble{}, repeats: map[string]*repeat{},
	}
}

// Trouble says that something is not well, or is unwell in another way: tell is what
// to tell of it once it has lasted, with when it began. A grave one waits for
// nobody: it is told at once, also after the same was told as one that is not grave.
func (d *Desk) Trouble(key string, grave bool, tell func(since time.Time)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.troubles[key]
	if t == nil {
		t = &trouble{key: key, since: time.Now()}
		d.troubles[key] = t
		d.lasting = append(d.lasting, t)
		d.ring()
	}
	t.tell = tell
	if grave && !t.grave {
		t.grave = true
		d.publish(t)
	}
}

// Over says that something is well. tell is what to tell of it, with when its
// trouble began, if that was told.
func (d *Desk) Over(key string, tell func(since time.Time)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.troubles[key]
	if t == nil {
		return
	}
	t.over = true
	delete(d.troubles, key)
	if t.told {
		d.news = append(d.news, func() { tell(t.since) })
		d.ring()
	}
}

// Repeat says that something happened that may happen often: it is told with its
// count since it was told last, 1 the first time. tell is the latest one's.
func (d *Desk) Repeat(key string, tell func(n int)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.repeats[key]; r != nil {
		r.n, r.tell = r.n+1, tell
		return
	}
	r := &repeat{key: key, due: time.Now().Add(d.every)}
	d.repeats[key] = r
	d.counting = append(d.counting, r)
	d.news = append(d.news, func() { tell(1) })
	d.ring()
}

// Run tells what is news until ctx ends, and then what is news by then.
func (d *Desk) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		next := d.publishDue()
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
		select {
		case <-d.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	d.publishDue()
	return nil
}

// publishDue tells what is due and returns when to look again; zero = when it rings.
func (d *Desk) publishDue() (next time.Time) {
	d.mu.Lock()
	now := time.Now()
	for len(d.lasting) > 0 && !now.Before(d.lasting[0].since.Add(d.after)) {
		t := d.lasting[0]
		d.lasting = d.lasting[1:]
		if !t.over && !t.told {
			d.publish(t)
		}
	}
	for len(d.counting) > 0 && !now.Before(d.counting[0].due) {
		r := d.counting[0]
		d.counting = d.counting[1:]
		if r.n == 0 {
			delete(d.repeats, r.key)
			continue
		}
		n, tell := r.n, r.tell
		d.news = append(d.news, func() { tell(n) })
		r.n, r.due = 0, now.Add(d.every)
		d.counting = append(d.counting, r)
	}
	if len(d.lasting) > 0 {
		next = d.lasting[0].since.Add(d.after)
	}
	if len(d.counting) > 0 && (next.IsZero() || d.counting[0].due.Before(next)) {
		next = d.counting[0].due
	}
	news := d.news
	d.news = nil
	d.mu.Unlock()
	for _, tell := range news {
		tell()
	}
	return next
}

func (d *Desk) publish(t *trouble) {
	t.told = true
	tell := t.tell
	d.news = append(d.news, func() { tell(t.since) })
	d.ring()
}

func (d *Desk) ring() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}
