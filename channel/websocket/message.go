package websocket

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"leasehold/channel"
	"leasehold/internal/handshake"
	"leasehold/internal/jsonframe"
)

// The names that stand for parts of a message in send, beside id.
const (
	nameConversation = "conversation"
	nameThread       = "thread"
	nameMessageID    = "message_id"
	nameText         = "text"
)

// answer is a parsed Answer.
type answer struct {
	id, why, messageID jsonframe.Pointer // nil = not there
	retryAfter         jsonframe.Pointer
	refused, retry     *match
	within             time.Duration
}

func (p *plan) readSend(c Config, parts *handshake.Parts, f *faults) {
	names := []string{nameConversation, nameThread, nameMessageID, nameText}
	if c.Send != "" {
		for _, name := range slices.Sorted(maps.Keys(p.secrets)) {
			if slices.Contains(names, name) {
				f.add("secrets."+name, "in send it is a part of the message; give the secret another name")
			}
		}
	}
	p.message = f.template("send", c.Send, parts.Names(append(names, jsonframe.NameID)...), false)
	a := c.Answer
	p.answer = answer{
		id: f.pointer("answer.id", a.ID), why: f.pointer("answer.error", a.Error), messageID: f.pointer("answer.message_id", a.MessageID),
		retryAfter: f.pointer("answer.retry_after", a.RetryAfter),
		refused:    f.match("answer.refused_when", a.RefusedWhen), retry: f.match("answer.retry_when", a.RetryWhen), within: a.Within.Std(),
	}
	if p.answer.within < time.Second {
		f.add("answer.within", "want at least 1s, not %s", p.answer.within)
	}
	switch {
	case p.message == nil && a.ID != "":
		f.add("answer.id", "there is nothing to answer without send")
	case p.message == nil:
	case a.ID != "" && !p.message.Uses(jsonframe.NameID):
		f.add("answer.id", "send must hold {{id}}, or no answer can repeat it")
	case a.ID == "" && !c.WSPing:
		f.add("answer.id", "with ws_ping = false nothing else tells whether a message has arrived; set it, or leave send out")
	}
	if a.Dedupes && (p.message == nil || !p.message.Uses(jsonframe.NameID)) {
		f.add("answer.dedupes", "send must hold {{id}}, or the service cannot tell a repeat")
	}
	if a.RetryAfter != "" && a.RetryWhen == (Match{}) {
		f.add("answer.retry_after", "is of an answer for which answer.retry_when holds; set that, too")
	}
	if a.ID == "" && (a.Error != "" || a.MessageID != "" || a.RetryAfter != "" || a.RefusedWhen != (Match{}) || a.RetryWhen != (Match{})) {
		f.add("answer.id", "is missing: without it no frame is an answer")
	}
}

// frameOf is the frame that sends a message. Its error says what must change: the
// message can never be sent as it is.
func (p *plan) frameOf(m channel.Message) ([]byte, error) {
	switch {
	case p.message == nil:
		return nil, errors.New("the installation's config has no send, which says how a message is sent; set it to speak")
	case m.Op != "send":
		return nil, fmt.Errorf("websocket can send and nothing else, not %q", m.Op)
	case m.Text == "" && len(m.Native) == 0:
		return nil, errors.New("text and native are empty; there is nothing to send")
	case m.Conversation == "" && p.message.Uses(nameConversation):
		return nil, errors.New("conversation is missing, and send names it")
	case m.ID == "" && p.message.Uses(jsonframe.NameID):
		return nil, errors.New("the message has no id, and send names it")
	}
	known := map[string]json.RawMessage{}
	for name, value := range map[string]string{nameConversation: m.Conversation, nameThread: m.Thread, nameMessageID: m.MessageID, nameText: m.Text} {
		known[name] = json.RawMessage("null")
		if value != "" {
			known[name] = jsonframe.Quote(value)
		}
	}
	b, _ := p.message.Render(jsonframe.Values{ID: jsonframe.Quote(m.ID), Message: known, Secrets: p.secrets}) // all are known
	if len(m.Native) == 0 {
		return b, nil
	}
	merged, err := jsonframe.Merge(b, m.Native)
	if err != nil {
		return nil, fmt.Errorf("merge native into send: %w", err)
	}
	return merged, nil
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
