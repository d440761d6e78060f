package ssefake

import "time"

// Behaviour is how the server treats a bot's requests that are to come. The zero
// value is good behaviour.
type Behaviour struct {
	// Status answers with this status, RetryAfter, Location and Body, and no stream.
	Status     int
	RetryAfter string
	Location   string
	Body       string
	HalfBody   bool   // the rest of the body never comes
	Type       string // the stream's Content-Type, in place of text/event-stream
	Encoding   string // its Content-Encoding
	Stall      bool   // never answer
	Late       bool   // answer with the first event only
	Drop       bool   // close the TCP connection right behind the answer
	End        bool   // end the stream in good order once everything has been sent
	Retry      string // the value of a retry line, the first of the stream
	NoComments bool   // send events and nothing else
}

// Behave sets how a bot's next requests are treated, until it is called again.
func (s *Server) Behave(bot string, how Behaviour) {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.behaviour = how
}

func (b *bot) behave() Behaviour {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.behaviour
}

// Cut resets a bot's connections.
func (s *Server) Cut(bot string) { s.bot(bot).each((*client).drop) }

// End ends a bot's streams in good order.
func (s *Server) End(bot string) { s.bot(bot).each(func(c *client) { c.do(c.end) }) }

// Silence makes a bot's connections mute: they stay open, and nothing is sent any
// more, neither events nor comments.
func (s *Server) Silence(bot string) { s.bot(bot).each(func(c *client) { c.mute.Store(true) }) }

// Say sends bytes of the stream to a bot's connections, outside the count of events:
// lines, or parts of them.
func (s *Server) Say(bot, text string) {
	s.bot(bot).each(func(c *client) { c.do(func() { c.send([]byte(text)) }) })
}

// Raw writes bytes past HTTP, such as Garbage. The connection is of no use to the
// server after it.
func (s *Server) Raw(bot string, b []byte) {
	s.bot(bot).each(func(c *client) { c.do(func() { c.raw(b) }) })
}

// Garbage is no chunk.
func Garbage() []byte { return []byte("\xff\xff not a chunk\r\n\r\n") }

// wait is the time between two comments: as the request wishes, else as the options
// say.
func (c *client) wait(wish string) time.Duration {
	if d, err := time.ParseDuration(wish); err == nil && d > 0 {
		return d
	}
	return c.server.options.CommentEvery
}
