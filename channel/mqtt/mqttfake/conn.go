package mqttfake

import (
	"net"
	"sync"
	"time"
)

// conn is one connection. Except for read and write the server's lock guards it.
type conn struct {
	server *Server
	tcp    net.Conn
	client *client // nil until its CONNECT has come
	record *Connection
	how    Behaviour

	version   byte // 4 or 5
	clean     bool
	username  string
	keepAlive uint16
	expiry    uint32
	window    int
	greeted   bool      // the CONNACK has gone
	goodbye   bool      // a DISCONNECT has come
	taken     []Message // acknowledged, and not told yet
	mute      bool      // nothing is sent any more

	queueing sync.Mutex // guards what follows
	changed  *sync.Cond
	out      []outgoing
	closing  bool // close once out is empty
	dead     bool
}

// outgoing is a packet to send, and the step that it is.
type outgoing struct {
	packet []byte
	step   string
}

func newConn(s *Server, tcp net.Conn) *conn {
	c := &conn{server: s, tcp: tcp}
	c.changed = sync.NewCond(&c.queueing)
	return c
}

// write sends what is queued until the connection is dropped.
func (c *conn) write() {
	for {
		c.queueing.Lock()
		for len(c.out) == 0 && !c.dead && !c.closing {
			c.changed.Wait()
		}
		if c.dead || len(c.out) == 0 {
			c.queueing.Unlock()
			c.hangUp(false)
			return
		}
		next := c.out[0]
		c.out = c.out[1:]
		c.queueing.Unlock()
		_ = c.tcp.SetWriteDeadline(time.Now().Add(c.server.options.Patience))
		if _, err := c.tcp.Write(next.packet); err != nil {
			c.drop()
			continue
		}
		if next.step != "" {
			c.server.step(c.name(), next.step)
		}
	}
}

func (c *conn) name() string {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.client == nil {
		return ""
	}
	return c.client.id
}

func (c *conn) send(packet []byte, step string) {
	if c.mute {
		return
	}
	c.queueing.Lock()
	defer c.queueing.Unlock()
	c.out = append(c.out, outgoing{packet, step})
	c.changed.Broadcast()
}

// close ends the connection once everything has been sent.
func (c *conn) close() {
	c.queueing.Lock()
	defer c.queueing.Unlock()
	c.closing = true
	c.changed.Broadcast()
}

// drop resets the connection at once.
func (c *conn) drop() {
	c.queueing.Lock()
	c.dead = true
	c.changed.Broadcast()
	c.queueing.Unlock()
	c.hangUp(true)
}

func (c *conn) hangUp(reset bool) {
	if l, ok := c.tcp.(interface{ SetLinger(int) error }); ok && reset {
		_ = l.SetLinger(0)
	}
	_ = c.tcp.Close()
}

// takenOver ends the connection because its client has another one.
func (c *conn) takenOver() {
	if c.version == 5 && !c.server.options.Wordless {
		c.disconnect(0x8E, "")
	}
	c.close()
	c.record.Closed = time.Now()
}

func (c *conn) disconnect(code byte, words string) {
	var w builder
	w.byte(code)
	var props builder
	if words != "" {
		props.byte(0x1F)
		props.text(words)
	}
	w.section(props)
	c.send(w.packet(typeDisconnect<<4), "")
}

// left books the end, and ends a session that shall not last.
func (c *conn) left() {
	defer func() {
		if name := c.name(); name != "" {
			c.server.step(name, StepEnd)
		}
	}()
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	delete(c.server.conns, c)
	if c.client == nil || c.record == nil {
		return
	}
	if c.record.Closed.IsZero() {
		c.record.Closed = time.Now()
	}
	c.record.Goodbye = c.goodbye
	if c.client.conn == c {
		c.client.conn = nil
		if c.expiry == 0 {
			c.client.forget()
		}
	}
}

func (c *conn) publish(f *flight, dup bool) {
	m := f.message
	head := byte(typePublish<<4) | m.QoS<<1
	if dup {
		head |= 8
	}
	if m.Retain {
		head |= 1
	}
	var w builder
	w.text(m.Topic)
	if m.QoS > 0 {
		w.uint16(f.id)
	}
	if c.version == 5 {
		var props builder
		if m.ContentType != "" {
			props.byte(0x03)
			props.text(m.ContentType)
		}
		for _, p := range m.Properties {
			props.byte(0x26)
			props.text(p[0])
			props.text(p[1])
		}
		w.section(props)
	}
	w.b = append(w.b, m.Payload...)
	c.record.Sent++
	c.send(w.packet(head), StepPublish)
}

func (c *conn) acknowledge(head byte, id uint16) {
	var w builder
	w.uint16(id)
	c.send(w.packet(head), "")
}
