package websocketfake

import (
	"encoding/json"
	"time"
)

// listen hears until the connection ends, and books what it hears.
func (c *client) listen(said chan<- message) {
	if c.how.Deaf {
		<-c.over
		return
	}
	for {
		_, b, err := c.ws.Read(c.server.ctx)
		if err != nil {
			c.code.Store(closeCode(err))
			return
		}
		c.spoke()
		var m message
		if err := json.Unmarshal(b, &m); err != nil {
			c.bot.violate("said what is no JSON: %q", b)
			continue
		}
		switch m.Type {
		case "ack":
			c.ack(text(m.ID))
		case "ping":
			c.do(func() { c.say([]byte(`{"type":"pong"}`)) })
		case "send":
			c.receive(b)
		case "edit", "delete", "react", "unreact", "typing":
			c.operate(b)
		case "answer", "working":
			c.answered(b)
		case "login", "resume", "subscribe":
			c.heard(string(b))
			if m.Type == "subscribe" {
				continue
			}
			select {
			case said <- m:
			case <-c.over:
				return
			}
		default:
			c.bot.violate("said an unknown thing: %q", b)
		}
	}
}

func (c *client) spoke() {
	c.bot.mu.Lock()
	defer c.bot.mu.Unlock()
	c.record.Heard = time.Now()
}

func (c *client) heard(frame string) {
	c.bot.mu.Lock()
	defer c.bot.mu.Unlock()
	if len(c.bot.frames) < 1000 { // no test looks at more
		c.bot.frames = append(c.bot.frames, frame)
	}
}

// answered books the answer to an interaction.
func (c *client) answered(frame []byte) {
	var a Answer
	if err := json.Unmarshal(frame, &a); err != nil {
		c.bot.violate("gave an answer that is none: %q", frame)
		return
	}
	c.bot.mu.Lock()
	defer c.bot.mu.Unlock()
	c.bot.answers = append(c.bot.answers, a)
}

// receive takes a message, or says why not.
func (c *client) receive(frame []byte) {
	m := Message{Frame: frame}
	if err := json.Unmarshal(frame, &m); err != nil {
		c.bot.violate("sent a message that is none: %q", frame)
		return
	}
	c.respond(m.ID, func(answer map[string]any) {
		id, first := c.bot.take(m, c.server.dedupes(c.bot.name))
		answer["id"] = id
		if first && c.server.options.Received != nil {
			c.server.options.Received(c.bot.name, m)
		}
	})
}

// operate does what a frame asks for, or says why not. One without an id of its own
// gets no answer.
func (c *client) operate(frame []byte) {
	var o Operation
	if err := json.Unmarshal(frame, &o); err != nil {
		c.bot.violate("sent an operation that is none: %q", frame)
		return
	}
	c.respond(o.ID, func(answer map[string]any) {
		if why := c.bot.operate(o, c.server.dedupes(c.bot.name)); why != "" {
			answer["error"] = why
		} else if c.server.options.Operated != nil {
			c.server.options.Operated(c.bot.name, o)
		}
	})
}

// respond answers the frame with this id as the platform behaves, if need be after it
// has done what the frame asks for.
func (c *client) respond(id string, do func(answer map[string]any)) {
	answer := map[string]any{"type": "sent", "ref": id}
	switch {
	case c.how.Busy != "":
		answer["error"], answer["busy"] = c.how.Busy, true
		if c.how.After != "" {
			answer["after"] = json.RawMessage(c.how.After)
		}
	case c.how.Refuse != "":
		answer["error"] = c.how.Refuse
	default:
		do(answer)
	}
	if c.how.NoAnswer || id == "" {
		return
	}
	b, err := json.Marshal(answer)
	if err != nil {
		panic(err) // strings
	}
	c.do(func() { c.say(b) })
}

// ack books an acknowledgement. It must be of an event, sent on this connection.
func (c *client) ack(id string) {
	b := c.bot
	b.mu.Lock()
	i, first := b.index(id), false
	switch {
	case i < 0:
		b.mu.Unlock()
		b.violate("acknowledged %q, which is no event", id)
		return
	case i >= c.next:
		b.mu.Unlock()
		b.violate("acknowledged %q on a connection that it was not sent on", id)
		return
	case b.items[i].acked:
		b.repeated++
	default:
		first = true
		b.items[i].acked = true
		b.acked++
		c.record.Acked++
	}
	if b.items[i].on == c {
		b.items[i].on = nil
		c.unacked--
	}
	b.mu.Unlock()
	c.server.step(b.name, StepAck)
	if first && c.server.options.Acked != nil {
		c.server.options.Acked(b.name, id)
	}
	if c.server.options.Window > 0 {
		c.wake()
	}
}
