package websocketfake

import (
	"encoding/json"
	"net/http"
	"time"
)

// message is what a bot may say.
type message struct {
	Type  string          `json:"type"`
	ID    json.RawMessage `json:"id"` // a string, or a number where the event's is one
	Token string          `json:"token"`
	After json.RawMessage `json:"after"`
}

func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// serve says hello and sends events until the connection ends.
func (c *client) serve(r *http.Request) {
	hello := !c.server.options.Login
	said := make(chan message, 64) // login and resume, from listen
	listening := make(chan struct{})
	c.server.wg.Go(func() {
		defer close(listening)
		defer c.once.Do(func() { close(c.over) })
		c.listen(said)
	})
	defer func() { // the other side's goodbye is booked, also when a send failed because of it
		c.drop()
		<-listening
	}()
	if since := r.URL.Query().Get("since"); since != "" {
		c.resume(since)
	}
	if hello {
		c.hello()
	}
	ping, stop := ticker(c.server.options.PingEvery)
	defer stop()
	for {
		wait := time.Duration(0)
		if hello {
			wait = c.sendEvents()
		}
		retry, stop := timer(wait)
		select {
		case <-c.over:
			stop()
			return
		case f := <-c.tasks:
			f()
		case <-c.poke:
		case <-retry:
		case <-ping:
			if !c.mute.Load() {
				c.server.wg.Go(func() { _ = c.ws.Ping(c.server.ctx) })
			}
		case m := <-said:
			switch {
			case m.Type == "resume":
				c.resume(text(m.After))
			case c.server.options.Token != nil && m.Token != c.server.options.Token(c.bot.name):
				c.say([]byte(`{"type":"error","error":"invalid_token","detail":"token ` + m.Token + ` is unknown"}`))
				c.closeWith(4001, "invalid token "+m.Token)
			case !hello:
				hello = true
				c.hello()
			}
		}
		stop()
	}
}

func timer(wait time.Duration) (<-chan time.Time, func()) {
	if wait <= 0 {
		return nil, func() {}
	}
	t := time.NewTimer(wait)
	return t.C, func() { t.Stop() }
}

func ticker(every time.Duration) (<-chan time.Time, func()) {
	if every <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(every)
	return t.C, t.Stop
}

func (c *client) hello() {
	if !c.how.NoHello {
		c.say([]byte(`{"type":"hello","bot":"` + c.bot.name + `"}`))
		c.server.step(c.bot.name, StepHello)
	}
	if c.how.Silent {
		c.silence()
	}
	if c.how.Code != 0 {
		c.closeWith(c.how.Code, c.how.Reason)
	}
}

// resume goes back to what followed an event.
func (c *client) resume(after string) {
	c.bot.mu.Lock()
	defer c.bot.mu.Unlock()
	if i := c.bot.index(after); i >= 0 && c.server.options.Fire {
		c.next = i + 1
	}
}

// sendEvents sends what may be sent, and returns when something is due again.
func (c *client) sendEvents() time.Duration {
	for !c.mute.Load() && !c.ended() {
		frame, wait := c.pick()
		if frame == nil {
			return wait
		}
		c.say(frame)
		c.server.step(c.bot.name, StepEvent)
	}
	return 0
}

func (c *client) ended() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// pick takes the next event to send: one whose time has come again, or a new one.
// Without one it returns when the next is due again, 0 = never.
func (c *client) pick() ([]byte, time.Duration) {
	b, o := c.bot, c.server.options
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	var wait time.Duration
	for i, due := range c.flight { // empty without Retry
		switch {
		case b.items[i].acked:
			delete(c.flight, i)
		case !due.After(now):
			return c.take(i, now), 0
		case wait == 0 || due.Sub(now) < wait:
			wait = due.Sub(now)
		}
	}
	if o.Window > 0 && c.unacked >= o.Window {
		return nil, wait
	}
	for ; c.next < len(b.items); c.next++ {
		if !b.items[c.next].acked {
			c.next++
			return c.take(c.next-1, now), 0
		}
	}
	return nil, wait
}

// take books an event as sent; bot.mu is held.
func (c *client) take(i int, now time.Time) []byte {
	it, o := &c.bot.items[i], c.server.options
	it.sends++
	c.record.Sent++
	if it.on != c {
		it.on = c
		c.unacked++
	}
	if o.Fire {
		c.bot.fired = max(c.bot.fired, i+1)
	}
	if o.Retry > 0 {
		c.flight[i] = now.Add(o.Retry << min(it.sends-1, 10))
	}
	return c.bot.content(i)
}
