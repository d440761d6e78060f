package mqttfake

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// connectTimeout is how long a connection may take to say who it is.
const connectTimeout = 30 * time.Second

// read hears until the connection ends, and books what it hears.
func (c *conn) read() {
	defer c.left()
	defer c.close()
	c.server.step("", StepDial)
	in := bufio.NewReader(c.tcp)
	_ = c.tcp.SetReadDeadline(time.Now().Add(connectTimeout))
	for first := true; ; first = false {
		head, body, err := readPacket(in)
		if err != nil {
			return
		}
		step := stepOf(head)
		if step != "" {
			c.server.step(c.clientOf(head, body), step)
		}
		c.server.mu.Lock()
		err = c.handle(head, body, first)
		if err != nil && c.client != nil {
			c.client.violate("%v", err)
		}
		deaf, taken := c.how.Deaf, c.taken
		c.taken = nil
		c.patience()
		c.server.mu.Unlock()
		for _, m := range taken {
			if c.server.options.Acked != nil {
				c.server.options.Acked(c.client.id, m)
			}
		}
		switch {
		case err != nil, c.goodbye:
			return
		case deaf:
			<-c.server.ctx.Done()
			return
		}
	}
}

// patience sets when the client must have said something again.
func (c *conn) patience() {
	var by time.Time
	if c.keepAlive > 0 {
		by = time.Now().Add(time.Duration(c.keepAlive) * time.Second * 3 / 2)
	}
	_ = c.tcp.SetReadDeadline(by)
}

func stepOf(head byte) string {
	switch head >> 4 {
	case typeConnect:
		return StepConnect
	case typeSubscribe:
		return StepSubscribe
	case typePuback, typePubrec:
		return StepAck
	case typePingreq:
		return StepPing
	}
	return ""
}

// clientOf is who a packet is of; of a CONNECT it has to be read.
func (c *conn) clientOf(head byte, body []byte) string {
	if head>>4 != typeConnect {
		return c.name()
	}
	r := reader{b: body}
	r.text()
	level := r.byte()
	r.take(3)
	if level == 5 {
		r.properties()
	}
	return r.text()
}

// handle takes a packet. An error is a violation, and ends the connection.
func (c *conn) handle(head byte, body []byte, first bool) error {
	kind, flags := head>>4, head&15
	if first != (kind == typeConnect) {
		return fmt.Errorf("a packet of type %d, first = %t", kind, first)
	}
	var want byte
	if kind == typePubrel || kind == typeSubscribe || kind == typeUnsubscribe {
		want = 2
	}
	if kind != typePublish && flags != want {
		return fmt.Errorf("a packet of type %d with the flags %d", kind, flags)
	}
	if kind != typeConnect && !c.greeted {
		return fmt.Errorf("a packet of type %d before the CONNACK", kind)
	}
	r := &reader{b: body}
	switch kind {
	case typeConnect:
		return c.connect(r)
	case typePublish:
		return c.heard(flags, r)
	case typePuback, typePubrec, typePubcomp, typePubrel:
		id := r.uint16()
		if c.version == 5 && len(r.b) > 0 {
			if code := r.byte(); code >= 0x80 {
				return fmt.Errorf("a packet of type %d with the code %#02x", kind, code)
			}
			if len(r.b) > 0 {
				r.properties()
			}
		}
		if err := r.end(); err != nil {
			return err
		}
		if kind == typePubrel {
			c.acknowledge(typePubcomp<<4, id)
			return nil
		}
		c.client.ack(kind, id)
		return nil
	case typeSubscribe:
		return c.subscribe(r)
	case typeUnsubscribe:
		return c.unsubscribe(r)
	case typePingreq:
		c.record.Pings++
		if !c.how.NoPong {
			c.send([]byte{typePingresp << 4, 0}, "")
		}
		return r.end()
	case typeDisconnect:
		c.goodbye = true
		return nil
	}
	return fmt.Errorf("a packet of type %d, which a client never sends", kind)
}

func (c *conn) connect(r *reader) error {
	name, level, flags := r.text(), r.byte(), r.byte()
	c.keepAlive = r.uint16()
	c.version, c.clean, c.expiry, c.window = level, flags&2 != 0, 1, c.server.options.Window
	if c.version == 5 {
		props := r.properties()
		c.expiry, c.window = props.expiry, 65535
		if props.inFlight > 0 {
			c.window = int(props.inFlight)
		}
	} else if c.clean {
		c.expiry = 0
	}
	id := r.text()
	if flags&0x80 != 0 {
		c.username = r.text()
	}
	var password string
	if flags&0x40 != 0 {
		password = string(r.bytes())
	}
	if err := r.end(); err != nil {
		return err
	}
	switch {
	case name != "MQTT" || level != 4 && level != 5 || flags&1 != 0 || flags&0x3c != 0:
		return fmt.Errorf("a CONNECT of %q %d with the flags %#02x", name, level, flags)
	case id == "", level == 4 && flags&0xC0 == 0x40:
		return errors.New("a CONNECT without a client id, or with a password and no username")
	}
	c.client = c.server.client(id)
	c.how = c.client.behaviour
	switch {
	case c.how.Stall:
		return nil
	case c.how.DropFirst:
		c.close()
		return nil
	case c.how.Code != 0:
		return c.refuse(c.how.Code)
	case c.server.options.Password != nil && password != c.server.options.Password(c.username):
		code := byte(5)
		if c.version == 5 {
			code = 0x87
		}
		c.how.Words = strings.TrimSpace(c.how.Words + " who is " + password + "?") // some brokers do repeat it
		return c.refuse(code)
	}
	return c.welcome()
}

// welcome takes the client, and resumes its session.
func (c *conn) welcome() error {
	if c.clean {
		c.client.forget()
	}
	present := c.client.present
	c.client.present = true
	c.client.enter(c)
	var flags byte
	if present {
		flags = 1
	}
	if c.server.options.KeepAlive > 0 && c.version == 5 {
		c.keepAlive = c.server.options.KeepAlive
	}
	c.connack(flags, 0)
	c.greeted = true
	if c.how.Drop {
		c.close()
		return nil
	}
	c.client.resume()
	if c.how.Silent {
		c.mute = true
	}
	return nil
}

func (c *conn) refuse(code byte) error {
	c.connack(0, code)
	c.close()
	return nil
}

func (c *conn) connack(flags, code byte) {
	var w builder
	w.byte(flags)
	w.byte(code)
	if c.version == 5 {
		var props builder
		if c.server.options.KeepAlive > 0 {
			props.byte(0x13)
			props.uint16(c.server.options.KeepAlive)
		}
		if c.server.options.InFlight > 0 {
			props.byte(0x21)
			props.uint16(c.server.options.InFlight)
		}
		if c.server.options.Largest > 0 {
			props.byte(0x27)
			props.uint32(c.server.options.Largest)
		}
		if c.how.NoQoS {
			props.byte(0x24)
			props.byte(0)
		}
		if c.how.Words != "" {
			props.byte(0x1F)
			props.text(c.how.Words)
		}
		if c.how.Reference != "" {
			props.byte(0x1C)
			props.text(c.how.Reference)
		}
		w.section(props)
	}
	c.send(w.packet(typeConnack<<4), StepConnack)
}

func (c *conn) subscribe(r *reader) error {
	id := r.uint16()
	if c.version == 5 {
		r.properties()
	}
	var codes []byte
	var old []Message // retained
	for len(r.b) > 0 && r.err == nil {
		filter, options := r.text(), r.byte()
		s := subscription{filter: filter, qos: options & 3, noLocal: options&4 != 0}
		handling := options >> 4 & 3
		switch {
		case r.err != nil:
		case id == 0, filter == "", s.qos == 3, c.version == 4 && options > 2, options&0xC0 != 0, handling == 3, s.noLocal && strings.HasPrefix(filter, shared):
			return fmt.Errorf("a SUBSCRIBE to %q with the options %#02x and the packet id %d", filter, options, id)
		}
		if code, ok := c.how.Suback[filter]; ok {
			codes = append(codes, code)
			if code >= 0x80 {
				continue
			}
			s.qos = code
		} else {
			codes = append(codes, s.qos)
		}
		i := slices.IndexFunc(c.client.subscriptions, func(have subscription) bool { return have.filter == filter })
		if i >= 0 {
			c.client.subscriptions[i] = s
		} else {
			c.client.subscriptions = append(c.client.subscriptions, s)
		}
		if handling == 0 || handling == 1 && i < 0 {
			old = append(old, c.server.kept(s)...)
		}
	}
	if len(codes) == 0 || r.err != nil {
		return fmt.Errorf("a SUBSCRIBE to nothing, or a broken one: %w", errors.Join(r.err))
	}
	c.record.Subscribes++
	if c.how.NoSuback {
		return nil
	}
	c.send(c.answer(typeSuback, id, codes), StepSuback)
	for _, m := range old {
		c.client.enqueue(m)
	}
	return nil
}

func (c *conn) unsubscribe(r *reader) error {
	id := r.uint16()
	if c.version == 5 {
		r.properties()
	}
	var codes []byte
	for len(r.b) > 0 && r.err == nil {
		filter := r.text()
		before := len(c.client.subscriptions)
		c.client.subscriptions = slices.DeleteFunc(c.client.subscriptions, func(s subscription) bool { return s.filter == filter })
		var code byte
		if before == len(c.client.subscriptions) {
			code = 0x11
		}
		codes = append(codes, code)
	}
	if len(codes) == 0 || r.err != nil {
		return fmt.Errorf("an UNSUBSCRIBE from nothing, or a broken one: %w", errors.Join(r.err))
	}
	if c.version == 4 {
		codes = nil
	}
	c.send(c.answer(typeUnsuback, id, codes), "")
	return nil
}

func (c *conn) answer(kind byte, id uint16, codes []byte) []byte {
	var w builder
	w.uint16(id)
	if c.version == 5 {
		w.section(builder{})
	}
	w.b = append(w.b, codes...)
	return w.packet(kind << 4)
}

// heard takes a client's own publication.
func (c *conn) heard(flags byte, r *reader) error {
	m := Message{QoS: flags >> 1 & 3, Retain: flags&1 != 0}
	m.Topic = r.text()
	var id uint16
	if m.QoS > 0 {
		id = r.uint16()
	}
	if c.version == 5 {
		props := r.properties()
		m.ContentType, m.Properties = props.contentType, props.user
		if props.alias > 0 {
			return errors.New("a topic alias, which was not allowed")
		}
	}
	if r.err != nil || m.Topic == "" || strings.ContainsAny(m.Topic, "+#\x00") || m.QoS > 2 || m.QoS > 0 && id == 0 || m.QoS == 0 && flags&8 != 0 {
		return fmt.Errorf("a PUBLISH to %q with the flags %d and the packet id %d: %w", m.Topic, flags, id, errors.Join(r.err))
	}
	m.Payload = r.b
	c.record.Unanswered++
	if limit := int(c.server.options.InFlight); limit > 0 && c.version == 5 && c.record.Unanswered > limit {
		return fmt.Errorf("%d publications on their way, of at most %d", c.record.Unanswered, limit)
	}
	if c.how.NoPuback {
		return nil
	}
	if c.record.Unanswered--; c.how.Puback < 0x80 {
		c.server.received = append(c.server.received, m)
		c.server.route(m, c.client)
	}
	switch m.QoS {
	case 1:
		var w builder
		w.uint16(id)
		if c.how.Puback != 0 && c.version == 5 {
			w.byte(c.how.Puback)
		}
		c.send(w.packet(typePuback<<4), "")
	case 2:
		c.acknowledge(typePubrec<<4, id)
	}
	return nil
}
