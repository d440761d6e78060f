package websocketfake

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// bot is one account of the platform: its events and its connections.
type bot struct {
	name string

	mu         sync.Mutex // guards what follows
	items      []item
	extra      map[string]int // ids of events that are not numbered, to their index
	acked      int
	fired      int // with Fire: how many were sent
	live       []*client
	ended      chan struct{} // closed and replaced when a connection ends
	records    []*Connection
	max        int
	behaviour  Behaviour
	frames     []string // heard, acknowledgements and pings left out
	messages   []Message
	posts      []*Post          // as many as messages
	theirs     map[string]*Post // events that were reacted to
	operations []Operation
	repeats    int // messages and operations that were dropped
	doubles    int // those, and those that were not
	answers    []Answer
	violations []string
	repeated   int
}

// item is one event.
type item struct {
	frame []byte // nil: the numbered default
	id    string // "" with a nil frame
	at    time.Time
	sends int
	acked bool
	on    *client // that sent it last; nil once it is acknowledged
}

// id of the event at an index.
func (b *bot) id(i int) string {
	if b.items[i].id != "" {
		return b.items[i].id
	}
	return b.name + "-" + pad(i+1)
}

func pad(n int) string {
	s := strconv.Itoa(n)
	return strings.Repeat("0", max(0, 6-len(s))) + s
}

// content of the event at an index.
func (b *bot) content(i int) []byte {
	if b.items[i].frame != nil {
		return b.items[i].frame
	}
	return fmt.Appendf(nil, `{"type":"message","id":%q,"seq":%d,"conversation":"c%d","sender":"u%d","text":"event %d of %s","time":%d}`,
		b.id(i), i+1, i%4, i%7, i+1, b.name, b.items[i].at.UnixMilli())
}

// index of an event by its id, -1 if there is none.
func (b *bot) index(id string) int {
	if i, ok := b.extra[id]; ok {
		return i
	}
	n, ok := strings.CutPrefix(id, b.name+"-")
	if !ok {
		return -1
	}
	i, err := strconv.Atoi(n)
	if err != nil || i < 1 || i > len(b.items) || b.id(i-1) != id {
		return -1
	}
	return i - 1
}

func (b *bot) add(items ...item) {
	b.mu.Lock()
	for _, it := range items {
		it.at = time.Now()
		if it.id != "" {
			b.extra[it.id] = len(b.items)
		}
		b.items = append(b.items, it)
	}
	b.mu.Unlock()
	b.each((*client).wake)
}

// take books a message, and returns the platform's id of it and whether it is new: one
// that is not is dropped where the platform does that.
func (b *bot) take(m Message, dedupes bool) (id string, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.IndexFunc(b.messages, func(o Message) bool { return o.ID == m.ID }); i >= 0 && m.ID != "" {
		b.doubles++
		if dedupes {
			b.repeats++
			return b.posts[i].ID, false
		}
	}
	p := &Post{ID: b.name + "-sent-" + pad(len(b.messages)+1), To: m.To, Text: m.Text}
	b.messages, b.posts = append(b.messages, m), append(b.posts, p)
	return p.ID, true
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

// enter books a connection, after it has waited for an older one to end.
func (b *bot) enter(c *client, token string, grace time.Duration) {
	came, timer := time.Now(), time.NewTimer(grace)
	defer timer.Stop()
	b.mu.Lock()
	busy := len(b.live) > 0
	for waited := grace == 0; len(b.live) > 0 && !waited; {
		ended := b.ended
		b.mu.Unlock()
		select {
		case <-ended:
		case <-timer.C:
			waited = true
		}
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	c.next = b.fired
	b.live = append(b.live, c)
	b.max = max(b.max, len(b.live))
	c.record = &Connection{Opened: time.Now(), CloseCode: -1, Concurrent: len(b.live), Token: token}
	if busy {
		c.record.Waited = c.record.Opened.Sub(came)
	}
	b.records = append(b.records, c.record)
}

func (b *bot) leave(c *client, code int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.live {
		if other == c {
			b.live = append(b.live[:i], b.live[i+1:]...)
			break
		}
	}
	c.record.Closed, c.record.CloseCode = time.Now(), code
	close(b.ended)
	b.ended = make(chan struct{})
}
