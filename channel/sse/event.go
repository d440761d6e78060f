package sse

import (
	"bytes"
	"encoding/json"

	"leasehold/channel"
	"leasehold/internal/jsonframe"
)

const typeRaw = "raw"

// event turns a block into an event. made is the id of one that has none: another
// one when the server says the same again.
func (p *plan) event(b block, made func() string) channel.Event {
	data := bytes.ToValidUTF8(b.data, []byte("\uFFFD")) // as the standard decodes the stream
	isJSON := json.Valid(data)
	e := channel.Event{ID: p.id(b, data, isJSON), Type: typeRaw}
	if e.ID == "" {
		e.ID = made()
	}
	if p.layout.Type == nil && b.name != "" && len(b.name) <= jsonframe.MaxType {
		e.Type = b.name
	}
	if !isJSON {
		e.Payload, e.ContentType = data, "text/plain; charset=utf-8"
		return e
	}
	e.Raw = data
	found := p.layout.Read(data)
	switch {
	case found.Type != "":
		e.Type = found.Type
	case found.HasText && p.layout.Type == nil && b.name == "":
		e.Type = unnamed
	}
	e.Text, e.Body, e.Time = found.Text, found.Text, found.Time
	e.Conversation.ID, e.Sender.ID, e.Thread = found.Conversation, found.Sender, found.Thread
	return e
}

// id is the platform's id of an event; "" = none. The position that is left from an
// earlier event is none: two events would be one.
func (p *plan) id(b block, data []byte, isJSON bool) string {
	switch {
	case p.layout.ID == nil:
		return jsonframe.ShortID(b.id)
	case !isJSON:
		return ""
	}
	return jsonframe.ShortID(jsonframe.Text(p.layout.ID.Scalar(data)))
}
