package mqttfake

// Behaviour is how the broker treats a client's connections that are to come. The
// zero value is good behaviour.
type Behaviour struct {
	Code      byte   // refuse the CONNECT with this code
	Words     string // of version 5: said with the answer to a CONNECT
	Reference string // of version 5: another server, said with it
	Stall     bool   // never answer the CONNECT
	DropFirst bool   // close instead of an answer to the CONNECT
	Drop      bool   // close right after the CONNECT was taken
	Silent    bool   // send nothing more after the answer to the CONNECT
	Deaf      bool   // read nothing after the CONNECT: the client's writes fill the buffers
	NoPong    bool   // leave a PINGREQ without an answer
	NoSuback  bool   // leave a SUBSCRIBE without an answer
	Forgetful bool   // hear no acknowledgement: what they were for comes again; with NoPong, or it lies
	NoPuback  bool   // leave a publication without an answer
	NoQoS     bool   // of version 5: take publications of QoS 0 only
	Puback    byte   // of version 5: answer publications with this code
	// Suback are the codes that subscriptions are answered with, by filter: the QoS
	// granted, or a refusal from 0x80 on.
	Suback map[string]byte
}

// Behave sets how a client's next connections are treated, until it is called again.
func (s *Server) Behave(id string, how Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client(id).behaviour = how
}

// Session gives a client a session that hears filters with QoS 1, as if it had been
// here before.
func (s *Server) Session(id string, filters ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.client(id)
	c.present = true
	for _, filter := range filters {
		c.subscriptions = append(c.subscriptions, subscription{filter: filter, qos: 1})
	}
}

// Forget drops a client's session, as a broker does that restarts without its disk.
func (s *Server) Forget(id string) { s.of(id, func(c *client) { c.forget() }) }

// Publish gives a message to everybody who subscribes to it.
func (s *Server) Publish(all ...Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range all {
		s.route(m, nil)
	}
}

// route hands a message out, and keeps a retained one; the lock is held.
func (s *Server) route(m Message, from *client) {
	if m.Retain {
		if s.retained[m.Topic] = m; len(m.Payload) == 0 {
			delete(s.retained, m.Topic)
		}
	}
	for _, c := range s.clients {
		c.offer(m, from)
	}
}

// kept are the retained messages that a subscription is sent; the lock is held.
func (s *Server) kept(sub subscription) []Message {
	var all []Message
	for topic, m := range s.retained {
		if matches(sub.filter, topic) {
			m.QoS = min(m.QoS, sub.qos)
			all = append(all, m)
		}
	}
	return all
}

func (s *Server) of(id string, f func(*client)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.client(id))
}

func (s *Server) connected(id string, f func(*conn)) {
	s.of(id, func(c *client) {
		if c.conn != nil {
			f(c.conn)
		}
	})
}

// Disconnect ends a client's connection: one of version 5 with a code and words,
// one of 3.1.1 without.
func (s *Server) Disconnect(id string, code byte, words string) {
	s.connected(id, func(c *conn) {
		if c.version == 5 {
			c.disconnect(code, words)
		}
		c.close()
	})
}

// Cut resets a client's connection.
func (s *Server) Cut(id string) { s.connected(id, (*conn).drop) }

// Silence makes a client's connection mute: it stays open, and nothing is sent any
// more.
func (s *Server) Silence(id string) { s.connected(id, func(c *conn) { c.mute = true }) }

// Raw sends bytes to a client past the protocol. Nothing is sent after them.
func (s *Server) Raw(id string, b []byte) {
	s.connected(id, func(c *conn) {
		c.send(b, "")
		c.mute = true
	})
}
