package ssefake

import (
	"slices"
	"time"
)

// Connection is the book of one connection. A request that was refused is none.
type Connection struct {
	Opened     time.Time
	Closed     time.Time // zero: it is open
	After      string    // its Last-Event-ID
	Concurrent int       // connections of the bot that were open when it came, itself included
	Sent       int       // events
}

// Push gives a bot n more events, numbered on.
func (s *Server) Push(bot string, n int) { s.bot(bot).add(make([]item, n)...) }

// PushEvent gives a bot an event of one's own making, in place of the next number.
func (s *Server) PushEvent(bot string, e Event) { s.bot(bot).add(item{Event: e, made: true}) }

// Pushed counts the events given to a bot so far.
func (s *Server) Pushed(bot string) int {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items)
}

// Sends counts how often an event was sent.
func (s *Server) Sends(bot, id string) int {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.index(id); i >= 0 {
		return b.items[i].sends
	}
	return 0
}

// Connections are the books of a bot's connections, the oldest first.
func (s *Server) Connections(bot string) []Connection {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Connection, len(b.records))
	for i, r := range b.records {
		all[i] = *r
	}
	return all
}

// Live counts the connections that a bot has now.
func (s *Server) Live(bot string) int {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.live)
}

// MaxConcurrent is the most connections that a bot ever had at once.
func (s *Server) MaxConcurrent(bot string) int {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.max
}

// Violations lists what a bot did that the protocol forbids, the first hundred.
func (s *Server) Violations(bot string) []string {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.violations)
}
