package websocket

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"leasehold/channel"
	"leasehold/internal/handshake"
	"leasehold/internal/jsonframe"
)

// The names that stand for parts of a message in its frame, beside id.
const (
	nameConversation = "conversation"
	nameThread       = "thread"
	nameMessageID    = "message_id"
	nameText         = "text"
	nameFollowUp     = "follow_up"
)

// answer is a parsed Answer.
type answer struct {
	id, why, messageID jsonframe.Pointer // nil = not there
	retryAfter         jsonframe.Pointer
	refused, retry     *match
	within             time.Duration
}

// ops are the frames of a config that make something of a message, by op.
func ops(c Config) map[string]string {
	return map[string]string{"send": c.Send, "edit": c.Edit, "delete": c.Delete, "react": c.React, "unreact": c.Unreact, "typing": c.Typing}
}

// able is what a config has frames for.
func able(c Config) channel.Capabilities {
	return channel.Capabilities{
		Send: c.Send != "", Edit: c.Edit != "", Delete: c.Delete != "", React: c.React != "" && c.Unreact != "", Typing: c.Typing != "",
		Threads: true, Native: true,
	}
}

func (p *plan) readMessages(c Config, parts *handshake.Parts, f *faults) {
	names := []string{nameConversation, nameThread, nameMessageID, nameText, nameFollowUp}
	frames := ops(c)
	p.messages = map[string]*jsonframe.Template{}
	for _, op := range slices.Sorted(maps.Keys(frames)) {
		if frames[op] == "" {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(p.secrets)) {
			if slices.Contains(names, name) {
				f.add("secrets."+name, "in %s it is a part of the message; give the secret another name", op)
			}
		}
		if t := f.template(op, frames[op], parts.Names(append(names, jsonframe.NameID)...), false); t != nil {
			p.messages[op] = t
			p.checkMessage(c, op, t, f)
		}
	}
	if (c.React == "") != (c.Unreact == "") {
		f.add("unreact", "goes with react: set both or neither")
	}
	p.readAnswer(c, f)
}

// checkMessage holds the frame of an op to what the config says of answers.
func (p *plan) checkMessage(c Config, op string, t *jsonframe.Template, f *faults) {
	named := t.Uses(jsonframe.NameID)
	if c.Answer.ID != "" && !named && op != opTyping {
		f.add("answer.id", "%s must hold {{id}}, or no answer can repeat it", op)
	}
	if !c.WSPing && (c.Answer.ID == "" || !named && op == opTyping) {
		f.add("answer.id", "with ws_ping = false nothing else tells whether a message has arrived; set it, with {{id}} in %s, or leave %s out", op, op)
	}
	if c.Answer.Dedupes && !named && op != opTyping {
		f.add("answer.dedupes", "%s must hold {{id}}, or the service cannot tell a repeat", op)
	}
	if slices.Contains([]string{"edit", "delete", "react", "unreact"}, op) && !t.Uses(nameMessageID) {
		f.add(op, "must hold {{message_id}}, or it says nothing of what to %s", op)
	}
}

// opTyping alone may go without an answer: nothing is lost with it.
const opTyping = "typing"

func (p *plan) readAnswer(c Config, f *faults) {
	a := c.Answer
	p.answer = answer{
		id: f.pointer("answer.id", a.ID), why: f.pointer("answer.error", a.Error), messageID: f.pointer("answer.message_id", a.MessageID),
		retryAfter: f.pointer("answer.retry_after", a.RetryAfter),
		refused:    f.match("answer.refused_when", a.RefusedWhen), retry: f.match("answer.retry_when", a.RetryWhen), within: a.Within.Std(),
	}
	if p.answer.within < time.Second {
		f.add("answer.within", "want at least 1s, not %s", p.answer.within)
	}
	if len(p.messages) == 0 && a.ID != "" {
		f.add("answer.id", "there is nothing to answer without send")
	}
	if len(p.messages) == 0 && a.Dedupes {
		f.add("answer.dedupes", "send must hold {{id}}, or the service cannot tell a repeat")
	}
	if a.RetryAfter != "" && a.RetryWhen == (Match{}) {
		f.add("answer.retry_after", "is of an answer for which answer.retry_when holds; set that, too")
	}
	if a.ID == "" && (a.Error != "" || a.MessageID != "" || a.RetryAfter != "" || a.RefusedWhen != (Match{}) || a.RetryWhen != (Match{})) {
		f.add("answer.id", "is missing: without it no frame is an answer")
	}
}

// frameOf is the frame that a message is, and whether an answer to it can be told.
// Its error says what must change: the message can never be sent as it is.
func (p *plan) frameOf(m channel.Message) (frame []byte, answered bool, err error) {
	t := p.messages[m.Op]
	switch {
	case t == nil && slices.Contains([]string{"send", "edit", "delete", "react", "unreact", "typing"}, m.Op):
		return nil, false, fmt.Errorf("the installation's config has no %s, which says how to %s; set it first", m.Op, m.Op)
	case t == nil:
		return nil, false, fmt.Errorf("websocket knows no op %q", m.Op)
	case m.Text == "" && len(m.Native) == 0 && (m.Op == "send" || m.Op == "edit"):
		return nil, false, fmt.Errorf("text and native are empty; there is nothing to %s", m.Op)
	case m.Text == "" && t.Uses(nameText) && strings.HasSuffix(m.Op, "react"):
		return nil, false, fmt.Errorf("text is missing; it is the emoji to %s with", m.Op)
	case m.Conversation == "" && t.Uses(nameConversation):
		return nil, false, fmt.Errorf("conversation is missing, and %s names it", m.Op)
	case m.MessageID == "" && m.Op != "send" && t.Uses(nameMessageID):
		return nil, false, fmt.Errorf("message_id is missing, and %s names it", m.Op)
	case m.ID == "" && t.Uses(jsonframe.NameID):
		return nil, false, fmt.Errorf("the message has no id, and %s names it", m.Op)
	}
	known := map[string]json.RawMessage{}
	for name, value := range map[string]string{nameConversation: m.Conversation, nameThread: m.Thread, nameMessageID: m.MessageID, nameText: m.Text, nameFollowUp: m.FollowUp.Reveal()} {
		known[name] = json.RawMessage("null")
		if value != "" {
			known[name] = jsonframe.Quote(value)
		}
	}
	answered = p.answer.id != nil && t.Uses(jsonframe.NameID)
	b, _ := t.Render(jsonframe.Values{ID: jsonframe.Quote(m.ID), Message: known, Secrets: p.secrets}) // all are known
	if len(m.Native) == 0 {
		return b, answered, nil
	}
	merged, err := jsonframe.Merge(b, m.Native)
	if err != nil {
		return nil, false, fmt.Errorf("merge native into %s: %w", m.Op, err)
	}
	return merged, answered, nil
}

// taken is what an answer says of its message.
func (p *plan) taken(frame []byte) (channel.Receipt, error) {
	refused, retry := p.answer.refused.holds(frame, true), p.answer.retry.holds(frame, true)
	if !refused && !retry {
		return channel.Receipt{MessageID: jsonframe.Text(p.answer.messageID.Scalar(frame)), Raw: frame}, nil
	}
	said := frame
	if why, ok := p.answer.why.In(frame); ok && p.answer.why != nil {
		said = []byte(jsonframe.Text(why))
	}
	err := fmt.Errorf("the server did not take the message: %s", p.words.Show(string(said)))
	if after := p.answer.peace(frame); retry && after > 0 {
		return channel.Receipt{}, channel.RateLimited(err, after)
	}
	if retry {
		return channel.Receipt{}, channel.NotSent(err)
	}
	return channel.Receipt{}, channel.Refused(err)
}

// longest bounds a wait that a service asks for: a day is what platforms count by.
const longest = 24 * time.Hour

// peace is how long an answer asks to wait; 0 = it does not say.
func (a *answer) peace(frame []byte) time.Duration {
	if a.retryAfter == nil {
		return 0
	}
	seconds, err := strconv.ParseFloat(jsonframe.Text(a.retryAfter.Scalar(frame)), 64)
	if err != nil || !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, longest.Seconds()) * float64(time.Second))
}
