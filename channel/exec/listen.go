package exec

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"leasehold/channel"
	"leasehold/internal/child"
	"leasehold/internal/markup"
)

// maxLine bounds a line of the program, in bytes: as large as the largest event
// that is kept, so that a longer one could not be stored either.
const maxLine = 1 << 20

// listen hears the program until its output ends, or it does not keep to the
// protocol. With ctx the waiting for answers ends, and not the hearing.
func (s *session) listen(ctx context.Context, in *child.Lines) {
	for {
		b, size, err := in.Next(s.alive)
		switch {
		case err != nil && size > 0:
			s.tell("half_line", fmt.Sprintf("the program ended within a line, after %d bytes of it; a line that is not ended is not taken", size))
			return
		case err != nil:
			return
		case size > len(b):
			s.tell("line_too_large", fmt.Sprintf("a line of %d bytes was dropped; the most is %d", size, maxLine))
			continue
		case size == 0:
			continue
		}
		if !utf8.Valid(b) {
			b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
		}
		if err := s.hear(ctx, b); err != nil {
			s.fail(err)
			s.ignore(in)
			return
		}
	}
}

// ignore reads on, so that a program that is to end can write what it has begun.
func (s *session) ignore(in *child.Lines) {
	for {
		if _, _, err := in.Next(func() {}); err != nil {
			return
		}
	}
}

// hear takes one line. An error ends the session.
func (s *session) hear(ctx context.Context, b []byte) error {
	kind, body, err := parse(b)
	if err != nil {
		s.notMessage(b, err)
		return nil
	}
	switch kind {
	case "hello":
		return s.hello(body)
	case "log":
		r := remark{}
		if s.reads(kind, body, &r) {
			s.chatter.log(ctx, level(r.Level), "log", r.Text)
		}
		return nil
	case "status":
		if st := (status{}); s.reads(kind, body, &st) {
			s.took(st)
		}
		return nil
	case "ready", "pong", "event", "cursor", "send_result", "call_result":
	default:
		s.notMessage(b, fmt.Errorf("says %q, which nobody here knows", s.plan.show(kind, 40)))
		return nil
	}
	if !s.hasGreeted() {
		return channel.Failed("protocol", fmt.Errorf("the program said %s before hello", kind))
	}
	switch kind {
	case "ready":
		if r := (ready{}); s.reads(kind, body, &r) {
			s.ready(r.Identity)
		}
	case "event":
		s.ready("")
		return s.event(ctx, body)
	case "cursor":
		if !bytes.Equal(body, []byte("null")) {
			return s.push(nil, storedCursor(body), len(body), func() {})
		}
	case "send_result", "call_result":
		if r := (result{}); s.reads(kind, body, &r) {
			s.answered(r)
		}
	}
	return nil
}

// reads decodes a body; one that is not what its kind says is told and dropped.
func (s *session) reads(kind string, body json.RawMessage, into any) bool {
	err := json.Unmarshal(body, into)
	if err != nil {
		s.tell("message_invalid", fmt.Sprintf("a %s of the program was dropped: %s", kind, s.plan.show(decodeFault(err), maxShown)))
	}
	return err == nil
}

// decodeFault says where JSON is not what it should be, without its value.
func decodeFault(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%s cannot be a %s", wrong.Field, wrong.Value)
	}
	return err.Error()
}

// tell tells people, within the bounds of what a program may say to them.
func (s *session) tell(code, words string) {
	if s.chatter.limit.Allow() {
		s.link.Notice(code, words)
	}
}

// notMessage tells of a line that is no message, the first time: programs print
// banners, and libraries print warnings.
func (s *session) notMessage(b []byte, why error) {
	s.mu.Lock()
	s.garbage++
	first := s.garbage == 1
	s.mu.Unlock()
	if first {
		s.tell("not_a_message", fmt.Sprintf("a line on standard output %s: %s; write to standard error what is for people; further such lines are dropped in silence",
			why, s.plan.show(string(b[:min(len(b), maxStderr)]), maxShown)))
	}
}

// hello takes the program's introduction.
func (s *session) hello(body json.RawMessage) error {
	var h hello
	if err := json.Unmarshal(body, &h); err != nil {
		return channel.Failed("protocol", fmt.Errorf("the program's hello cannot be read: %s", s.plan.show(decodeFault(err), maxShown)))
	}
	if h.Protocol != version {
		return channel.Rejected("protocol", fmt.Errorf("the program speaks protocol %d of exec; this version of Leasehold speaks %d; update the older of the two", h.Protocol, version))
	}
	err := cmp.Or(markup.CheckFlavour(h.Writes.Markup), markup.CheckLimit(h.Writes.Limit), markup.CheckUnit(h.Writes.Unit))
	if err != nil {
		return channel.Rejected("protocol", fmt.Errorf("the program's hello: writes: %s", s.plan.show(err.Error(), maxShown)))
	}
	s.mu.Lock()
	again := !s.greeted.IsZero()
	if !again {
		s.greeted, s.can, s.limits, s.writes = time.Now(), h.Can, h.Limits, h.Writes
	}
	s.mu.Unlock()
	if !again {
		s.link.Log().Debug("program said hello", "program", s.plan.show(h.Name, 80), "version", s.plan.show(h.Version, 80))
		s.nudge()
	}
	return nil
}

func (s *session) hasGreeted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.greeted.IsZero()
}

// ready takes the platform's word that the program is connected, once. An event
// is such a word.
func (s *session) ready(identity string) {
	s.mu.Lock()
	first := !s.isReady
	s.isReady = true
	s.mu.Unlock()
	if first {
		s.link.Ready(channel.Info{Identity: s.plan.show(identity, 80)})
		s.nudge()
	}
}

// took takes a status: what the program says of itself. Before ready it gains time.
func (s *session) took(st status) {
	s.mu.Lock()
	same := st == s.status
	s.status = st
	if !s.isReady && !s.greeted.IsZero() {
		s.greeted = time.Now()
	}
	s.mu.Unlock()
	s.nudge()
	if said := s.chatter.remember(st.Text); !same && said != "" {
		code := s.plan.show(st.State, 40)
		if code == "" {
			code = "status"
		}
		s.tell(code, said)
	}
}
