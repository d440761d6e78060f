package websocket

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"leasehold/channel"
)

const (
	// maxID is how long an id is kept as it is; a longer one is kept as its hash.
	maxID = 255
	// maxType is how long a type may be before it counts as unknown.
	maxType = 64

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
func (p *plan) event(f frame, made func() string) (channel.Event, values) {
	v := p.values(f)
	e := channel.Event{Type: typeRaw}
	switch {
	case v.id != nil:
		e.ID = shortID(scalar(v.id))
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
	e.Raw = f.data
	text, hasText := p.text(p.pointers.text, f.data)
	e.Text, e.Body = text, text
	switch kind, ok := p.text(p.pointers.kind, f.data); {
	case ok && kind != "" && len(kind) <= maxType:
		e.Type = kind
	case hasText && p.pointers.kind == nil:
		e.Type = typeMessage
	}
	e.Conversation.ID, _ = p.text(p.pointers.conversation, f.data)
	e.Sender.ID, _ = p.text(p.pointers.sender, f.data)
	e.Thread, _ = p.text(p.pointers.thread, f.data)
	if at, ok := p.text(p.pointers.time, f.data); ok {
		e.Time = parseTime(at)
	}
	return e, v
}

// values finds what the templates may name in a frame, one that was cut short
// included.
func (p *plan) values(f frame) values {
	v := values{secrets: p.secrets}
	if f.binary || !f.json && f.size == len(f.data) {
		return v
	}
	v.frame = f.data
	v.id = scalarIn(p.pointers.id, f.data)
	v.cursor = scalarIn(p.pointers.cursor, f.data)
	return v
}

// text is the scalar at a pointer as text, true when there is one.
func (p *plan) text(at pointer, doc []byte) (string, bool) {
	raw := scalarIn(at, doc)
	if raw == nil {
		return "", false
	}
	return scalar(raw), true
}

// scalarIn is the string or number at a pointer, or nil. Neither a table nor null,
// true or an empty string says who or what something is.
func scalarIn(at pointer, doc []byte) json.RawMessage {
	if at == nil {
		return nil
	}
	raw, ok := at.in(doc)
	if !ok || len(raw) == 0 || bytes.Equal(raw, []byte(`""`)) {
		return nil
	}
	if raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
		return raw
	}
	return nil
}

func shortID(id string) string {
	if len(id) <= maxID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// parseTime reads RFC 3339, or a number since 1970 whose size tells its unit:
// seconds reach 1e11 in the year 5138, milliseconds in 1973. Zero when it is
// neither.
func parseTime(s string) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
			return time.Time{} // JSON has no such year
		}
		return t
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) || n <= 0 || n >= math.MaxInt64 {
		return time.Time{}
	}
	switch {
	case n < 1e11: // seconds, which may have a fraction
		whole, fraction := math.Modf(n)
		return time.Unix(int64(whole), int64(fraction*1e9)).UTC()
	case n < 1e14:
		return time.UnixMilli(int64(n)).UTC()
	case n < 1e17:
		return time.UnixMicro(int64(n)).UTC()
	default:
		return time.Unix(0, int64(n)).UTC()
	}
}
