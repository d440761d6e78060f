package websocketfake

// Behaviour is how the platform treats a bot's connections that are to come. The
// zero value is good behaviour.
type Behaviour struct {
	// Status refuses the upgrade with this status, RetryAfter and Body.
	Status     int
	RetryAfter string
	Body       string
	Stall      bool   // never answer the request
	Drop       bool   // close the TCP connection right after the upgrade
	NoHello    bool   // say nothing until there are events
	Code       int    // close with this code, and Reason, right after the hello
	Reason     string //
	NoPong     bool   // leave pings without an answer
	Deaf       bool   // read nothing: the other side's writes fill the buffers
	Silent     bool   // send nothing at all, pongs included, after the hello
	Refuse     string // answer messages with this error and take none
	Busy       string // answer messages with this error, and that they may come again
	After      string // with Busy: and after so many seconds
	NoAnswer   bool   // take messages and answer none
}

// Behave sets how a bot's next connections are treated, until it is called again.
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

// CloseWith closes a bot's connections with a code and waits for none of them.
func (s *Server) CloseWith(bot string, code int, reason string) {
	s.bot(bot).each(func(c *client) { c.do(func() { c.closeWith(code, reason) }) })
}

// Cut resets a bot's connections.
func (s *Server) Cut(bot string) { s.bot(bot).each(func(c *client) { c.drop() }) }

// Silence makes a bot's connections mute: they stay open, and nothing is sent any
// more, neither events nor pongs.
func (s *Server) Silence(bot string) { s.bot(bot).each((*client).silence) }

// Say sends a text message to a bot's connections, outside the count of events.
func (s *Server) Say(bot, text string) {
	s.bot(bot).each(func(c *client) { c.do(func() { c.say([]byte(text)) }) })
}

// SayBytes sends a binary message.
func (s *Server) SayBytes(bot string, b []byte) {
	s.bot(bot).each(func(c *client) { c.do(func() { c.sayBytes(b) }) })
}

// Raw writes bytes past the protocol: half a frame, or none at all. The connection
// is of no use to the platform after it.
func (s *Server) Raw(bot string, b []byte) {
	s.bot(bot).each(func(c *client) { c.do(func() { c.raw(b) }) })
}

// HalfFrame is the beginning of a text message whose end never comes.
func HalfFrame() []byte { return append([]byte{0x81, 100}, "half a frame"...) }

// Garbage is no WebSocket frame.
func Garbage() []byte { return []byte{0xff, 0xff, 0xff, 0xff, 0x00, 0xf3} }
