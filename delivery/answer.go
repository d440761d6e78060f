package delivery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"
	"time"

	"leasehold/channel"
)

const (
	// answerLimit is how much of an answer is looked at, in bytes: of an HTTP body or
	// of a program's standard output.
	answerLimit = bodyLimit
	// answerMost is how many messages one answer may have: more than anybody wants to
	// read at once, and few enough for the commit that they share with the mark.
	answerMost = 20

	// LeastExpiry is the least that a message may wait to be sent: what any platform
	// needs to answer.
	LeastExpiry = time.Second
	// MostExpiry is the most: the longest that anything else is kept by default.
	MostExpiry = 30 * 24 * time.Hour
)

// Answer is what a target said when it took an event, as far as it concerns us.
type Answer struct {
	Messages []Said          // to be sent
	Ack      json.RawMessage // the platform's own answer to an interaction; nil = none
	Fault    string          // why what was meant as an answer is none; then there is nothing else
}

// Said is one message of an answer. What it leaves open is the event's.
type Said struct {
	Op           string            `json:"op,omitempty"` // send, when left out
	Conversation string            `json:"conversation,omitempty"`
	Thread       *string           `json:"thread,omitempty"`     // "" = none
	MessageID    *string           `json:"message_id,omitempty"` // what it refers to; "" = nothing
	Text         string            `json:"text,omitempty"`
	Format       string            `json:"format,omitempty"` // plain, when left out, or markdown
	Native       json.RawMessage   `json:"native,omitempty"`
	ExpiresIn    *channel.Duration `json:"expires_in,omitempty"`
}

// About makes of s the message that answers e. What is of the event's conversation
// goes to its thread, where the channel type knows any, and refers to its message.
func (s Said) About(e *channel.Event, can channel.Capabilities) channel.Message {
	m := channel.Message{Op: orDefault(s.Op, "send"), Conversation: orDefault(s.Conversation, e.Conversation.ID), Text: s.Text, Format: s.Format, Native: s.Native}
	if string(m.Native) == "null" {
		m.Native = nil
	}
	if m.Conversation == e.Conversation.ID {
		m.MessageID = e.MessageID
		if can.Threads {
			m.Thread = e.Thread
		}
	}
	if s.Thread != nil {
		m.Thread = *s.Thread
	}
	if s.MessageID != nil {
		m.MessageID = *s.MessageID
	}
	return m
}

// Check says what no event can make good.
func (s Said) Check() error {
	if _, known := (channel.Capabilities{}).Does(orDefault(s.Op, "send")); !known {
		return fmt.Errorf("op: must be send, edit, delete, react, unreact or typing (got %q)", s.Op)
	}
	if err := channel.CheckFormat(s.Format); err != nil {
		return err
	}
	if d := s.ExpiresIn; d != nil && (d.Std() < LeastExpiry || d.Std() > MostExpiry) {
		return fmt.Errorf("expires_in: must be from 1s to 30d (got %s)", d.Std())
	}
	return nil
}

// Expiry is how long it may wait; 0 = what the default is.
func (s Said) Expiry() time.Duration {
	if s.ExpiresIn == nil {
		return 0
	}
	return s.ExpiresIn.Std()
}

// ReadAnswer reads what a target said with a 2xx, or a program before it ended with
// 0; nil: nothing to us. It is an object in JSON, which has text, messages or ack, and
// nothing that an answer does not have: a misspelled key would send a message
// elsewhere. contentType is what the target called it; "" = nothing.
func ReadAnswer(contentType string, body []byte) *Answer {
	if body = bytes.TrimSpace(body); len(body) == 0 || body[0] != '{' || !saysJSON(contentType) {
		return nil
	}
	keys, err := keysOf(body)
	_, text := keys["text"]
	messages, several := keys["messages"]
	ack, acks := keys["ack"]
	switch {
	case !text && !several && !acks:
		return nil
	case len(body) > answerLimit:
		return faulty("it has more than the %d KiB that an answer may have", answerLimit>>10)
	case err != nil:
		return faulty("it is no JSON: %v", err)
	}
	a := &Answer{}
	if acks && string(ack) != "null" {
		a.Ack = ack
	}
	delete(keys, "ack")
	if several {
		delete(keys, "messages")
		for key := range keys {
			return faulty("%q does not go with messages", key)
		}
		err = strictly(messages, &a.Messages)
	} else if one := (Said{}); len(keys) > 0 {
		if err = strictly(objectOf(keys), &one); one.Text != "" || len(one.Native) > 0 || one.Op != "" {
			a.Messages = []Said{one}
		}
	}
	if err != nil {
		return faulty("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if len(a.Messages) > answerMost {
		return faulty("it has %d messages of at most %d", len(a.Messages), answerMost)
	}
	for i, s := range a.Messages {
		if err := s.Check(); err != nil {
			return faulty("message %d: %v", i+1, err)
		}
	}
	return a
}

func faulty(format string, args ...any) *Answer { return &Answer{Fault: fmt.Sprintf(format, args...)} }

// saysJSON reports whether a content type is JSON's, or is not said.
func saysJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// keysOf are the keys of an object with their values, as far as it can be read; of
// the value at which it breaks off the key is there.
func keysOf(object []byte) (map[string]json.RawMessage, error) {
	keys := map[string]json.RawMessage{}
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return keys, err
	}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return keys, err
		}
		key, _ := token.(string) // it can be nothing else
		keys[key] = nil
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return keys, err
		}
		keys[key] = value
	}
	if _, err := dec.Token(); err != nil {
		return keys, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return keys, errors.New("something follows it")
	}
	return keys, nil
}

// objectOf puts keys together.
func objectOf(keys map[string]json.RawMessage) []byte {
	b, _ := json.Marshal(keys) // they were JSON
	return b
}

// strictly decodes what has no key that v does not have.
func strictly(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}
