package delivery

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"

	"leasehold/internal/eventid"
)

// Announcement is an event that the box makes of itself. It is never stored: what
// there is to tell is most urgent while the store is ill, telling it must not write
// to a disk at rest, and how things are can always be asked.
type Announcement struct {
	Type   string          // system.…
	Time   time.Time       // when it happened; zero = now
	About  Origin          // the installation that it is about; zero = none
	Text   string          // the same in a sentence, redacted
	System json.RawMessage // an object: what happened, redacted
	Except string          // the target that it is about, which is not told; "" = all are
}

// Origin names an installation in an Announcement.
type Origin struct {
	ID     string
	Type   string
	Labels map[string]string
}

const (
	// announceMax is how many announcements wait for one target: a night's worth of a
	// box that is in trouble, 100 KB. The oldest gives way, and the next one that is
	// sent says how many did.
	announceMax = 100
	// announceFor is how long one is tried.
	announceFor = 24 * time.Hour
	// lastWords bounds the last attempts when the dispatcher stops: that the node
	// stops is an announcement, too.
	lastWords = 2 * time.Second
)

// Announce tells every target whose events name a's type; "*" does not. It does not
// block. Each target is told in order and at least once, from memory: an attempt
// that fails is repeated, with a wait, until it is taken, for a day, or until the
// process ends.
func (d *Dispatcher) Announce(a Announcement) {
	if a.Time.IsZero() {
		a.Time = time.Now()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := eventid.NewSystem()
	for _, t := range d.order {
		if t.sink == nil || t.Name == a.Except || !t.wants(a.Type) {
			continue
		}
		q := d.announced[t.Name]
		if q == nil {
			q = &announcements{target: t.Name, more: make(chan struct{}, 1)}
			d.announced[t.Name] = q
		}
		q.add(&announcement{Announcement: a, id: id, webhookID: eventid.NewWebhook(0), made: time.Now()})
		d.ring(q.more)
		d.ring(d.announce)
	}
}

// announcement is one on its way to one target.
type announcement struct {
	Announcement
	id, webhookID string
	made          time.Time // with the monotonic clock: the wall's may be what the news is about
	tries         int
	due           time.Time
	body          []byte // sealed at the first attempt, the same for all
	missed        int    // that body tells of
}

// announcements are those that wait for one target.
type announcements struct {
	target   string
	waiting  []*announcement
	missed   int           // gave way, and nobody was told yet
	speaking bool          // a goroutine is at it
	flying   *announcement // with a call; nil = none
	fails    int           // attempts in a row that did not reach it
	due      time.Time     // not before
	more     chan struct{} // one has come
}

func (q *announcements) add(a *announcement) {
	q.waiting = append(q.waiting, a)
	if len(q.waiting) <= announceMax {
		return
	}
	if q.waiting[0] != q.flying {
		q.drop(q.waiting[0])
	} else {
		q.drop(q.waiting[1])
	}
}

// drop gives one up, and with it what it was to tell of others.
func (q *announcements) drop(a *announcement) {
	q.remove(a)
	q.missed += 1 + a.missed
}

func (q *announcements) remove(a *announcement) {
	for i, x := range q.waiting {
		if x == a {
			q.waiting = append(q.waiting[:i:i], q.waiting[i+1:]...)
			return
		}
	}
}

// hurry lets what waits after a failure go at once.
func (q *announcements) hurry() {
	q.due, q.fails = time.Time{}, 0
	for _, a := range q.waiting {
		a.due = time.Time{}
	}
}

// next returns the one that is to be sent now, or else how long to wait for it.
// The first waits for itself; after quickTries of its own fault the others pass it.
func (q *announcements) next(now time.Time) (*announcement, time.Duration) {
	for len(q.waiting) > 0 && now.Sub(q.waiting[0].made) >= announceFor {
		q.drop(q.waiting[0])
	}
	if now.Before(q.due) {
		return nil, q.due.Sub(now)
	}
	wait := announceFor
	for _, a := range q.waiting {
		if !now.Before(a.due) {
			return a, 0
		}
		wait = min(wait, a.due.Sub(now))
		if a.tries < quickTries {
			break
		}
	}
	return nil, wait
}

// runAnnouncements has each target told for which something waits, by a goroutine
// that ends with its queue. When ctx ends, what can be tried once more is.
func (d *Dispatcher) runAnnouncements(ctx context.Context) {
	calls, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var speakers sync.WaitGroup
	for more := true; more; {
		select {
		case <-d.announce:
		case <-ctx.Done():
			more = false
		}
		d.mu.Lock()
		for _, q := range d.announced {
			if !q.speaking && len(q.waiting) > 0 {
				q.speaking = true
				speakers.Go(func() { d.speak(ctx, calls, q) })
			}
		}
		d.mu.Unlock()
	}
	late := time.AfterFunc(lastWords, stop)
	defer late.Stop()
	speakers.Wait()
}

// speak tells one target what waits for it, until nothing does. Its waits end with
// ctx, its calls with calls.
func (d *Dispatcher) speak(ctx, calls context.Context, q *announcements) {
	for {
		d.mu.Lock()
		t := d.targets[q.target]
		if t == nil || !t.speaks() || len(q.waiting) == 0 || calls.Err() != nil {
			q.speaking = false
			if t == nil || len(q.waiting) == 0 && q.missed == 0 {
				delete(d.announced, q.target)
			}
			d.mu.Unlock()
			return
		}
		a, wait := q.next(time.Now())
		d.mu.Unlock()
		if a != nil {
			d.announceOnce(calls, t, q, a)
			continue
		}
		if !rest(ctx, wait, q.more) {
			d.mu.Lock()
			q.speaking = false
			d.mu.Unlock()
			return
		}
	}
}

// speaks reports whether announcements are sent to the target.
func (t *target) speaks() bool {
	if s, ok := t.sink.(*pullSink); ok && !s.wants(t.inFlight) {
		return false
	}
	return t.sink != nil && t.state != Disabled
}

// rest waits for d, or less when more rings; false: ctx has ended.
func rest(ctx context.Context, d time.Duration, more <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-more:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// announceOnce makes one attempt and acts on what became of it.
func (d *Dispatcher) announceOnce(ctx context.Context, t *target, q *announcements, a *announcement) {
	d.mu.Lock()
	if a.body == nil {
		a.missed, q.missed = q.missed, 0
		a.body = sealSystem(a, d.node)
	}
	attempt, with := a.tries+1, t.setup
	with.calls++
	q.flying = a
	d.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, with.Timeout)
	defer cancel()
	r := d.deliver(limited, &pick{target: t, setup: with}, Delivery{
		ID: a.webhookID, EventID: a.id, Type: a.Type, Installation: a.About.ID, Attempt: attempt, Envelope: a.body,
	})
	now := time.Now()
	var says []func()
	d.mu.Lock()
	d.ended(with)
	q.flying = nil
	if ctx.Err() == nil && t.setup == with {
		t.note(r, at(now))
	}
	switch {
	case r.Outcome == Taken:
		q.fails = 0
		q.remove(a)
	case r.Outcome == Aborted, t.setup != with: // it is called in another way now
	case r.Outcome == Gone:
		says = append(says, d.disable(ctx, t, r, at(now)))
	case r.Outcome == Down:
		q.fails++
		q.due = now.Add(max(r.After, probeWait(q.fails, d.random)))
	default:
		q.fails = 0
		a.tries++
		a.due = now.Add(max(r.After, retryWait(a.tries, d.random)))
	}
	if first := q.fails == 1 || q.fails == 0 && a.tries == 1; first && r.Outcome != Taken && r.Outcome != Aborted {
		says = append(says, func() {
			d.log.LogAttrs(ctx, slog.LevelInfo, "announcement failed", slog.String("target", t.Name), slog.String("type", a.Type), slog.String("error", r.Reason))
		})
	}
	d.mu.Unlock()
	for _, say := range says {
		say()
	}
}

// sealSystem makes the body that targets receive of an announcement.
func sealSystem(a *announcement, node Node) []byte {
	env := struct {
		Type      string     `json:"type"`
		Timestamp string     `json:"timestamp"`
		Data      systemData `json:"data"`
	}{a.Type, stamp(a.Time), systemData{ID: a.id, Node: node, Missed: a.missed, Text: a.Text, System: a.System}}
	if o := a.About; o.ID != "" {
		env.Data.Installation = &installation{o.ID, o.Type, o.Labels}
	}
	body, err := marshal(env, len(a.System)+512)
	if err != nil { // System is no JSON: our mistake, and still news
		env.Data.System, _ = json.Marshal(map[string]string{"text": strings.ToValidUTF8(string(a.System), "\uFFFD")})
		body, _ = marshal(env, len(a.System)+512)
	}
	return body
}

// systemData is the data of a system event.
type systemData struct {
	ID           string          `json:"id"` // sys_…; it is in no list
	Installation *installation   `json:"installation,omitempty"`
	Node         Node            `json:"node,omitzero"`
	Missed       int             `json:"missed,omitempty"` // system events before it that gave way and were never sent
	Text         string          `json:"text,omitempty"`
	System       json.RawMessage `json:"system"`
}
