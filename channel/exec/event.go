package exec

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"leasehold/channel"
	"leasehold/internal/jsonframe"
)

const (
	// maxID is how long an id is kept as it is; a longer one is kept as its hash.
	maxID = 255
	// maxType is how long a type may be before it counts as unknown.
	maxType = 64

	typeMessage = "message"
	typeRaw     = "raw"
)

// told is an event as the program tells it: an event's own fields, the cursor after
// it, and whether it wants an answer at once.
type told struct {
	channel.Event
	Cursor      json.RawMessage `json:"cursor"`
	Interaction bool            `json:"interaction"`
	FollowUp    followUp        `json:"follow_up"`
}

// addressIn is where an event that is kept as it was told has the address.
//
//nolint:gochecknoglobals // a table, never changed
var addressIn = []jsonframe.Pointer{{"follow_up", "address"}, {"follow_up"}}

// followUp is where the platform takes the answers to an event for a while.
type followUp struct {
	Address string    `json:"address"`
	Expires time.Time `json:"expires"`
}

// report is what came of it. id is as the program wrote it; nil: it has none.
type report struct {
	event      channel.Event
	cursor, id json.RawMessage
	asks       bool
}

// decode makes an event of what a program tells. One that does not have the form
// of an event is kept as it is, with the error that says why: it is worth more
// to people than none.
func decode(body json.RawMessage) (r report, err error) {
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
		t = told{Event: channel.Event{ID: scalar(parts.ID), Type: typeRaw, Raw: jsonframe.Without(body, addressIn...)}, Cursor: parts.Cursor}
		r.id = parts.ID
	}
	e := t.Event
	if address := t.FollowUp.Address; address != "" {
		e.FollowUp = channel.FollowUp{Address: channel.NewSecret(address), Expires: t.FollowUp.Expires.UTC()}
		e.Raw = jsonframe.WithoutText(e.Raw, address) // a program may have left it there
	}
	if e.ID != "" && r.id == nil {
		r.id, _ = json.Marshal(e.ID) // a string
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
		r.cursor = t.Cursor
	}
	r.event, r.asks = e, t.Interaction && e.ID != ""
	return r, err
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
func (s *session) event(ctx context.Context, body json.RawMessage) error {
	r, err := decode(body)
	e := &r.event
	if err != nil {
		s.tell("event_invalid", fmt.Sprintf("an event of the program is forwarded as it is: %s", s.plan.show(decodeFault(err), maxShown)))
	}
	if e.ID == "" {
		s.mu.Lock()
		s.nameless++
		first, n := s.nameless == 1, s.nameless
		s.mu.Unlock()
		if first {
			s.tell("event_without_id", "events of the program have no id, so that one that comes again is a second event, and none is acknowledged or answered")
		}
		e.ID, r.id = s.nonce+":"+strconv.Itoa(n), nil
	}
	stored := func() {}
	if r.asks {
		stored = s.interact(ctx, *e, r.id)
	}
	return s.push(e, storedCursor(r.cursor), len(body), func() {
		if r.id != nil {
			s.speech.ack(r.id)
		}
		stored()
	})
}

// push hands an event and the cursor after it to the inbox, and waits while too
// much waits for the disk: meanwhile nobody reads what the program writes. stored is
// called once both are on it.
func (s *session) push(e *channel.Event, cursor []byte, size int, stored func()) error {
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
		stored()
		return nil
	})
	return nil
}
