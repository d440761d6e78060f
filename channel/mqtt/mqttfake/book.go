package mqttfake

import (
	"slices"
	"time"
)

// Connection is the book of one connection that was taken.
type Connection struct {
	Opened     time.Time
	Closed     time.Time // zero: it is open
	Version    byte      // 4 is 3.1.1
	CleanStart bool
	KeepAlive  time.Duration
	Username   string
	Pings      int
	Subscribes int // SUBSCRIBE packets
	Sent       int // messages
	Acked      int
	Unanswered int  // its own publications that were not acknowledged
	Goodbye    bool // it ended with a DISCONNECT of the client
}

// Connections are the books of a client's connections, the oldest first.
func (s *Server) Connections(id string) (all []Connection) {
	s.of(id, func(c *client) {
		for _, r := range c.records {
			all = append(all, *r)
		}
	})
	return all
}

// Live counts the connections that a client has now, 0 or 1; "" counts everybody's.
func (s *Server) Live(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for name, c := range s.clients {
		if (id == "" || id == name) && c.conn != nil {
			n++
		}
	}
	return n
}

// TakenOver reports whether a client ever connected while it was connected.
func (s *Server) TakenOver(id string) (is bool) {
	s.of(id, func(c *client) { is = c.most > 1 })
	return is
}

// Unacked lists a client's messages of QoS 1 and 2 that it has not acknowledged.
func (s *Server) Unacked(id string) (all []Message) {
	s.of(id, func(c *client) {
		for _, f := range c.flight {
			all = append(all, f.message)
		}
		all = append(all, c.queue...)
	})
	return all
}

// Acked lists the messages that a client has acknowledged, in that order.
func (s *Server) Acked(id string) (all []Message) {
	s.of(id, func(c *client) { all = slices.Clone(c.acked) })
	return all
}

// Filters lists what a client's session subscribes to.
func (s *Server) Filters(id string) (all []string) {
	s.of(id, func(c *client) {
		for _, sub := range c.subscriptions {
			all = append(all, sub.filter)
		}
	})
	return all
}

// Received lists what clients have published.
func (s *Server) Received() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

// Violations lists what a client did that the protocol forbids, the first hundred.
func (s *Server) Violations(id string) (all []string) {
	s.of(id, func(c *client) { all = slices.Clone(c.violations) })
	return all
}
