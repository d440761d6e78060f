package exec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

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

// told is an event as the program tells it: an event's own fields, and the cursor
// after it.
type told struct {
	channel.Event
	Cursor json.RawMessage `json:"cursor"`
}

// decode makes an event of what a program tells. One that does not have the form
// of an event is kept as it is, with the error that says why: it is worth more
// to people than none.
func decode(body json.RawMessage) (e channel.Event, cursor, id json.RawMessage, err error) {
	var t told
	if err = json.Unmarshal(body, &t); err == nil {
		err = check(t.Event)
	}
	if err != nil {
		var parts struct {
			ID     json.RawMessage `json:"id"`
			Cursor json.RawMessage `json:"cursor"`
		}
		_ = json.Unmarshal(body, &parts) // it may be no object: then it has no id
		t = told{Event: channel.Event{ID: scalar(parts.ID), Type: typeRaw, Raw: body}, Cursor: parts.Cursor}
		id = parts.ID
	}
	e = t.Event
	if e.ID != "" && id == nil {
		id, _ = json.Marshal(e.ID) // a string
	}
	e.ID = shortID(e.ID)
	e.Time = e.Time.UTC()
	e.Installation = "" // a program speaks for its own installation only
	if e.Type == "" || len(e.Type) > maxType {
		e.Type = typeRaw
		if e.Text != "" {
			e.Type = typeMessage
		}
	}
	if e.Body == "" {
		e.Body = e.Text
	}
	if string(t.Cursor) != "null" {
		cursor = t.Cursor
	}
	return e, cursor, id, err
}

// check finds what the form of an event does not say.
func check(e channel.Event) error {
	switch {
	case len(e.Raw) > 0 && len(e.Payload) > 0:
		return errors.New("it has both raw and payload; it may have one of them")
	case !inCalendar(e.Time), e.Action != nil && !inCalendar(e.Action.Expires):
		return errors.New("a time is before the year 1 or after 9999")
	default:
		return nil
	}
}

// inCalendar reports whether JSON can hold a time.
func inCalendar(t time.Time) bool { return t.UTC().Year() >= 1 && t.UTC().Year() <= 9999 }

// scalar is a string's or a number's text; "" for everything else.
func scalar(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

func shortID(id string) string {
	if len(id) <= maxID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// event takes an event to the inbox.
func (s *session) event(body json.RawMessage) error {
	e, cursor, id, err := decode(body)
	if err != nil {
		s.tell("event_invalid", fmt.Sprintf("an event of the program is forwarded as it is: %s", s.plan.show(decodeFault(err), maxShown)))
	}
	if e.ID == "" {
		s.mu.Lock()
		s.nameless++
		first, n := s.nameless == 1, s.nameless
		s.mu.Unlock()
		if first {
			s.tell("event_without_id", "events of the program have no id, so that one that comes again is a second event, and none is acknowledged")
		}
		e.ID, id = s.nonce+":"+strconv.Itoa(n), nil
	}
	return s.push(&e, storedCursor(cursor), id, len(body))
}

// push hands an event and the cursor after it to the inbox, and waits while too
// much waits for the disk: meanwhile nobody reads what the program writes.
func (s *session) push(e *channel.Event, cursor []byte, id json.RawMessage, size int) error {
	s.waiting.Store(true)
	defer func() {
		s.last.Store(int64(time.Since(s.start))) // nobody listened: silence begins now
		s.waiting.Store(false)
	}()
	if !s.pending.Take(size, s.inbox.Done()) {
		return nil // the inbox has ended, and says why itself
	}
	// The inbox's end is seen by run, and with it the reason.
	_ = s.inbox.Push(e, cursor, func() error {
		s.pending.Give(size)
		if id != nil {
			s.speech.ack(id)
		}
		return nil
	})
	return nil
}
