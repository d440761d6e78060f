package websocket

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"leasehold/channel"
	"leasehold/internal/jsonframe"
)

const (
	typeMessage = "message"
	typeRaw     = "raw"
)

// frame is one message of the platform.
type frame struct {
	data   []byte
	binary bool
	json   bool // text that is JSON in valid UTF-8
	size   int  // more than len(data) when it was too large to be kept
}

func newFrame(data []byte, binary bool, size int) frame {
	return frame{data: data, binary: binary, size: size, json: !binary && size == len(data) && utf8.Valid(data) && json.Valid(data)}
}

// event turns a frame into an event, with the values that an acknowledgement may
// name. made is the id of an event whose frame has none.
func (p *plan) event(f frame, made func() string) (channel.Event, jsonframe.Values) {
	v := p.values(f)
	e := channel.Event{Type: typeRaw}
	switch {
	case v.ID != nil:
		e.ID = jsonframe.ShortID(jsonframe.Text(v.ID))
	default:
		e.ID = made()
	}
	switch {
	case f.binary:
		e.Payload, e.ContentType = f.data, "application/octet-stream"
		return e, v
	case !f.json && utf8.Valid(f.data):
		e.Payload, e.ContentType = f.data, "text/plain; charset=utf-8"
		return e, v
	case !f.json:
		e.Payload, e.ContentType = f.data, "application/octet-stream"
		return e, v
	}
	e.Raw, e.FollowUp = p.interaction.split(f.data, time.Now())
	found := p.layout.Read(f.data)
	switch {
	case found.Type != "":
		e.Type = found.Type
	case found.HasText && p.layout.Type == nil:
		e.Type = typeMessage
	}
	e.Text, e.Body, e.Time = found.Text, found.Text, found.Time
	e.Conversation.ID, e.Sender.ID, e.Thread = found.Conversation, found.Sender, found.Thread
	return e, v
}

// values finds what the templates may name in a frame, one that was cut short
// included.
func (p *plan) values(f frame) jsonframe.Values {
	v := jsonframe.Values{Secrets: p.secrets}
	if f.binary || !f.json && f.size == len(f.data) {
		return v
	}
	v.Frame = f.data
	v.ID = p.layout.ID.Scalar(f.data)
	v.Cursor = p.layout.Cursor.Scalar(f.data)
	return v
}
