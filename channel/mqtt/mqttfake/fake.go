// Package mqttfake is an MQTT broker, 5 and 3.1.1, for tests and for trying things
// out: sessions, QoS 0 to 2, wildcards, retained messages and takeover as the
// standard has them, a strict book of what a client did, and the nasty habits of
// real brokers.
//
// A client is who its client id says; its username counts only where a password is
// asked for. The broker keeps sessions until Forget, whatever a client asks, except
// those that shall end with the connection. It has no TLS and no WebSocket.
package mqttfake

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"
)

// Options are the broker's rules. The zero value takes everybody.
type Options struct {
	// Password returns the password of a user; nil asks for none.
	Password func(user string) string
	// Window is how many messages a client of version 3.1.1 may leave
	// unacknowledged; one of version 5 says so itself. 0 = 20.
	Window int
	// Flood sends a client all that waits for it, whatever its window, as a widespread
	// broker does with a long queue.
	Flood bool
	// Wordless makes the broker close a connection that is taken over without saying
	// why, as some do.
	Wordless bool
	// KeepAlive, in seconds, is imposed on clients of version 5; 0 = theirs.
	KeepAlive uint16
	// InFlight is how many publications of a client of version 5 the broker takes
	// before it has acknowledged them; 0 = no bound.
	InFlight uint16
	// Largest is the largest packet that a client of version 5 may send; 0 = no bound.
	Largest uint32
	// Patience is how long the broker waits for a client to take a packet before it
	// drops the connection; 0 = 30 s.
	Patience time.Duration
	// Acked is told of each message that a client has acknowledged.
	Acked func(client string, m Message)
	// Step is told of each step of the protocol as it happens, on the goroutine that
	// takes it; see Steps.
	Step func(client, step string)
}

// The steps of the protocol, in the order of a connection's life.
const (
	StepDial      = "dial"      // the connection has come; of nobody yet
	StepConnect   = "connect"   // the CONNECT has come
	StepConnack   = "connack"   // the answer has gone
	StepSubscribe = "subscribe" // a SUBSCRIBE has come
	StepSuback    = "suback"    // the answer has gone
	StepPublish   = "publish"   // a message has gone
	StepAck       = "ack"       // an acknowledgement has come
	StepPing      = "ping"      // a PINGREQ has come
	StepEnd       = "end"       // the connection is over
)

// Steps lists every step that a first connection with an event passes. A PINGREQ
// comes only when there is nothing else to say, and at the end nothing can be
// broken.
func Steps() []string {
	return []string{StepDial, StepConnect, StepConnack, StepSubscribe, StepSuback, StepPublish, StepAck}
}

// Message is what was published.
type Message struct {
	Topic       string
	Payload     []byte
	QoS         byte
	Retain      bool
	ContentType string      // of version 5
	Properties  [][2]string // of version 5: user properties
}

// Server is the broker. It is safe for concurrent use.
type Server struct {
	options Options
	ctx     context.Context //nolint:containedctx // the broker's own life, not a caller's: it ends with Close
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu       sync.Mutex // guards what follows, and everything of clients and connections
	clients  map[string]*client
	retained map[string]Message
	received []Message
	conns    map[*conn]bool
}

// New makes a broker that nobody can reach yet: Serve it.
func New(o Options) *Server {
	if o.Window == 0 {
		o.Window = 20
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	s := &Server{options: o, clients: map[string]*client{}, retained: map[string]Message{}, conns: map[*conn]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Serve serves ln until Close, and returns when nothing of it runs any more.
func (s *Server) Serve(ln net.Listener) error {
	stop := context.AfterFunc(s.ctx, func() { _ = ln.Close() })
	defer stop()
	defer s.wg.Wait()
	for {
		tcp, err := ln.Accept()
		if err != nil {
			if s.ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept: %w", err)
		}
		if !s.admit(tcp) {
			_ = tcp.Close()
		}
	}
}

// admit begins a connection; false: the broker has closed.
func (s *Server) admit(tcp net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	c := newConn(s, tcp)
	s.conns[c] = true
	s.wg.Go(c.write)
	s.wg.Go(c.read)
	return true
}

// Close drops every connection and waits until they have ended.
func (s *Server) Close() {
	s.mu.Lock()
	s.cancel()
	for c := range s.conns {
		c.drop()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// Config is the type's configuration for a client of this broker at address, such
// as "mqtt://127.0.0.1:1883". It hears devices/CLIENT/#. password is a secret reference, such as
// {"env": "TOKEN"}; nil where none is asked for.
func (s *Server) Config(address, client string, password map[string]string) json.RawMessage {
	c := map[string]any{"url": address, "client_id": client, "topics": []string{"devices/" + client + "/#"}}
	if password != nil {
		c["username"], c["password"] = client, password
	}
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and maps of them
	}
	return b
}

func (s *Server) step(client, step string) {
	if s.options.Step != nil {
		s.options.Step(client, step)
	}
}

// client returns the book of a client; the lock is held.
func (s *Server) client(id string) *client {
	c := s.clients[id]
	if c == nil {
		c = &client{id: id, used: map[uint16]bool{}}
		s.clients[id] = c
	}
	return c
}
