package websocketfake

import (
	"encoding/json"
	"slices"
	"time"
)

// Connection is the book of one connection.
type Connection struct {
	Opened     time.Time
	Closed     time.Time     // zero: it is open
	CloseCode  int           // of the other side's close frame; -1 = none came
	Concurrent int           // connections of the bot that were open when it came, itself included
	Waited     time.Duration // for an older one of the bot to end, at most Options.Grace
	Heard      time.Time     // when it last said anything: a frame or a ping
	Token      string        // that it came with
	Pings      int           // WebSocket pings heard
	Sent       int           // events
	Acked      int
}

// Push gives a bot n more events, numbered on.
func (s *Server) Push(bot string, n int) { s.bot(bot).add(make([]item, n)...) }

// PushFrame gives a bot an event of one's own making, in place of the next number.
// id is what acknowledges it.
func (s *Server) PushFrame(bot, id string, frame []byte) {
	s.bot(bot).add(item{id: id, frame: frame})
}

// Pushed counts the events given to a bot so far.
func (s *Server) Pushed(bot string) int {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items)
}

// Acked lists the ids that were acknowledged, in the order of the events.
func (s *Server) Acked(bot string) []string { return s.list(bot, true) }

// Unacked lists the ids that were not.
func (s *Server) Unacked(bot string) []string { return s.list(bot, false) }

func (s *Server) list(bot string, acked bool) []string {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := []string{}
	for i := range b.items {
		if b.items[i].acked == acked {
			ids = append(ids, b.id(i))
		}
	}
	return ids
}

// AckedCount counts what Acked lists.
func (s *Server) AckedCount(bot string) int {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.acked
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

// Live counts the connections that a bot has now; "" counts every bot's.
func (s *Server) Live(bot string) int {
	if bot != "" {
		b := s.bot(bot)
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.live)
	}
	n := 0
	for _, b := range s.all() {
		b.mu.Lock()
		n += len(b.live)
		b.mu.Unlock()
	}
	return n
}

// MaxConcurrent is the most connections that a bot ever had at once.
func (s *Server) MaxConcurrent(bot string) int {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.max
}

// Message is one that the platform has taken.
type Message struct {
	ID      string          `json:"id"`       // the bot's own
	To      string          `json:"to"`       // the conversation
	Thread  string          `json:"thread"`   //
	ReplyTo string          `json:"reply_to"` // the message that it answers
	Text    string          `json:"text"`
	Frame   json.RawMessage `json:"-"` // as it came
}

// Received lists the messages that were taken of a bot, in the order they came in;
// one that came twice is there twice.
func (s *Server) Received(bot string) []Message {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.messages)
}

// Repeats counts the messages of a bot that were dropped because it had sent them
// before.
func (s *Server) Repeats(bot string) int {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.repeats
}

// Answer is one to an interaction: an event of type action, which wants it at once.
type Answer struct {
	Type string          `json:"type"` // answer, or working: it comes later
	ID   string          `json:"id"`   // the event's
	Ack  json.RawMessage `json:"ack"`
}

// Answers lists what a bot answered interactions with.
func (s *Server) Answers(bot string) []Answer {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.answers)
}

// Heard lists the frames that a bot sent, acknowledgements, pings and messages left out.
func (s *Server) Heard(bot string) []string {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.frames)
}

// Repeated counts acknowledgements of what was acknowledged already; after an
// event was sent twice they are no violation.
func (s *Server) Repeated(bot string) int {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.repeated
}

// Violations lists what a bot did that the protocol forbids, the first hundred.
func (s *Server) Violations(bot string) []string {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.violations)
}
