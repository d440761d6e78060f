package mqttfake

import (
	"fmt"
	"slices"
	"time"
)

// client is a client id with its session and its book. The server's lock guards it.
type client struct {
	id      string
	conn    *conn // nil: it is not connected
	present bool  // it has a session

	subscriptions []subscription
	queue         []Message // not sent yet
	flight        []*flight // sent, in order
	next          uint16    // packet id
	used          map[uint16]bool

	behaviour  Behaviour
	records    []*Connection
	most       int // connections at once, until the older one was told to go
	acked      []Message
	violations []string
}

type subscription struct {
	filter  string
	qos     byte
	noLocal bool
}

// flight is a message that was sent and not acknowledged yet.
type flight struct {
	id       uint16
	message  Message
	received bool // QoS 2: its PUBREC has come
}

func (c *client) violate(format string, args ...any) {
	if len(c.violations) < 100 { // one is enough to fail a test
		c.violations = append(c.violations, fmt.Sprintf(format, args...))
	}
}

// forget drops the session.
func (c *client) forget() {
	c.present, c.subscriptions, c.queue, c.flight, c.next = false, nil, nil, nil, 0
	clear(c.used)
}

// offer gives the client a message if it subscribes to it; from is who published
// it, nil = the broker.
func (c *client) offer(m Message, from *client) {
	qos, found := byte(0), false
	for _, s := range c.subscriptions {
		if matches(s.filter, m.Topic) && (from != c || !s.noLocal) {
			qos, found = max(qos, s.qos), true
		}
	}
	if !found {
		return
	}
	m.QoS = min(m.QoS, qos)
	m.Retain = false
	c.enqueue(m)
}

func (c *client) enqueue(m Message) {
	if m.QoS == 0 && c.conn == nil {
		return
	}
	c.queue = append(c.queue, m)
	c.pump()
}

// pump sends what may be sent.
func (c *client) pump() {
	for len(c.queue) > 0 && c.conn != nil && c.conn.greeted {
		m := c.queue[0]
		if m.QoS > 0 && len(c.flight) >= c.conn.window && !c.conn.server.options.Flood {
			return
		}
		c.queue = c.queue[1:]
		f := &flight{message: m}
		if m.QoS > 0 {
			f.id = c.id16()
			c.flight = append(c.flight, f)
		}
		c.conn.publish(f, false)
	}
}

func (c *client) id16() uint16 {
	for {
		if c.next++; c.next != 0 && !c.used[c.next] {
			c.used[c.next] = true
			return c.next
		}
	}
}

// resume sends again what was not acknowledged, on a connection that is new.
func (c *client) resume() {
	for _, f := range c.flight {
		if f.received {
			c.conn.acknowledge(typePubrel<<4|2, f.id)
			continue
		}
		c.conn.publish(f, true)
	}
	c.pump()
}

// ack books an acknowledgement. It must be of the oldest message that waits for one.
func (c *client) ack(kind byte, id uint16) {
	if c.conn.how.Forgetful {
		return
	}
	i := slices.IndexFunc(c.flight, func(f *flight) bool { return f.id == id })
	if i < 0 {
		c.violate("acknowledged the packet id %d, which is not on its way", id)
		return
	}
	f := c.flight[i]
	var want byte = typePuback
	if f.message.QoS == 2 {
		if want = typePubrec; f.received {
			want = typePubcomp
		}
	}
	if kind != want {
		c.violate("acknowledged the packet id %d with a packet of type %d, not %d", id, kind, want)
		return
	}
	for _, older := range c.flight[:i] {
		if !older.received && kind != typePubcomp {
			c.violate("acknowledged the packet id %d before %d, which was sent before it", id, older.id)
		}
	}
	if kind == typePubrec {
		f.received = true
		c.conn.acknowledge(typePubrel<<4|2, id)
		return
	}
	c.flight = slices.Delete(c.flight, i, i+1)
	delete(c.used, id)
	c.conn.taken = append(c.conn.taken, f.message)
	c.acked = append(c.acked, f.message)
	c.conn.record.Acked++
	c.pump()
}

// enter gives the client a connection, in place of an older one.
func (c *client) enter(n *conn) {
	if old := c.conn; old != nil {
		c.most = max(c.most, 2)
		old.takenOver()
	}
	c.conn = n
	c.most = max(c.most, 1)
	n.record = &Connection{Opened: time.Now(), Version: n.version, CleanStart: n.clean, KeepAlive: time.Duration(n.keepAlive) * time.Second, Username: n.username}
	c.records = append(c.records, n.record)
}
