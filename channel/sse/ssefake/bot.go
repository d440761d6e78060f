package ssefake

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// bot is one account of the server: its events and its connections.
type bot struct {
	name string

	mu         sync.Mutex // guards what follows
	items      []item
	extra      map[string]int // ids of events that are not numbered, to their index
	asked      int            // index of the latest Last-Event-ID; -1 = none came
	live       []*client
	records    []*Connection
	max        int
	behaviour  Behaviour
	violations []string
}

// item is one event.
type item struct {
	Event
	made  bool // by hand: not the numbered default
	at    time.Time
	sends int
}

// Event is one event of one's own making. Its data may hold line ends.
type Event struct{ ID, Name, Data string }

// id of the event at an index.
func (b *bot) id(i int) string {
	if b.items[i].made {
		return b.items[i].ID
	}
	return fmt.Sprintf("%s-%06d", b.name, i+1)
}

// event at an index.
func (b *bot) event(i int) Event {
	if b.items[i].made {
		return b.items[i].Event
	}
	return Event{ID: b.id(i), Data: fmt.Sprintf(`{"type":"message","seq":%d,"conversation":"c%d","sender":"u%d","text":"event %d of %s","time":%d}`,
		i+1, i%4, i%7, i+1, b.name, b.items[i].at.UnixMilli())}
}

// write writes an event as the stream holds it.
func (e Event) write(newline string) []byte {
	var lines []string
	if e.ID != "" {
		lines = append(lines, "id: "+e.ID)
	}
	if e.Name != "" {
		lines = append(lines, "event: "+e.Name)
	}
	for line := range strings.SplitSeq(e.Data, "\n") {
		lines = append(lines, "data: "+line)
	}
	return []byte(strings.Join(append(lines, "", ""), newline))
}

// index of an event by its id, -1 if there is none.
func (b *bot) index(id string) int {
	if i, ok := b.extra[id]; ok {
		return i
	}
	var n int
	if _, err := fmt.Sscanf(strings.TrimPrefix(id, b.name+"-"), "%d", &n); err != nil || n < 1 || n > len(b.items) || b.id(n-1) != id {
		return -1
	}
	return n - 1
}

func (b *bot) add(items ...item) {
	b.mu.Lock()
	for _, it := range items {
		it.at = time.Now()
		if it.made && it.ID != "" {
			b.extra[it.ID] = len(b.items)
		}
		b.items = append(b.items, it)
	}
	b.mu.Unlock()
	b.each((*client).wake)
}

func (b *bot) each(f func(*client)) {
	b.mu.Lock()
	live := append([]*client(nil), b.live...)
	b.mu.Unlock()
	for _, c := range live {
		f(c)
	}
}

func (b *bot) violate(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.violations) < 100 { // one is enough to fail a test
		b.violations = append(b.violations, fmt.Sprintf(format, args...))
	}
}

// enter books a connection that asks for what follows an event, and decides where it
// begins.
func (b *bot) enter(c *client, after string) {
	o := c.server.options
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live = append(b.live, c)
	b.max = max(b.max, len(b.live))
	c.record = &Connection{Opened: time.Now(), After: after, Concurrent: len(b.live)}
	b.records = append(b.records, c.record)
	i := b.index(after)
	switch {
	case after == "" && o.LiveOnly:
		c.next = len(b.items)
	case i >= 0:
		c.next = i + 1
		b.asked = i
	}
	if o.Remember > 0 {
		c.next = max(c.next, len(b.items)-o.Remember)
	}
}

func (b *bot) leave(c *client) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.live {
		if other == c {
			b.live = append(b.live[:i], b.live[i+1:]...)
			break
		}
	}
	c.record.Closed = time.Now()
}
