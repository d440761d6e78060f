package exec

import (
	"bytes"
	"encoding/json"
	"fmt"

	"leasehold/channel"
)

// version is the protocol's. A program that speaks another one is not run.
const version = 1

// What we say. Each line is an object with one key, which names what it is.
type (
	start struct {
		Protocol     int                        `json:"protocol"`
		Installation string                     `json:"installation"`
		Config       map[string]json.RawMessage `json:"config"`
		Cursor       json.RawMessage            `json:"cursor"` // null: there is none yet
	}
	ack struct {
		ID json.RawMessage `json:"id"` // as the program wrote it
	}
	reply struct {
		ID    json.RawMessage `json:"id"`            // as the program wrote it
		Ack   json.RawMessage `json:"ack,omitempty"` // the user's program's own answer, as it is
		Defer bool            `json:"defer,omitempty"`
	}
	send struct {
		ID           string          `json:"id"`
		Op           string          `json:"op"`
		Conversation string          `json:"conversation,omitempty"`
		Thread       string          `json:"thread,omitempty"`
		MessageID    string          `json:"message_id,omitempty"`
		Text         string          `json:"text,omitempty"`
		Native       json.RawMessage `json:"native,omitempty"`
		FollowUp     string          `json:"follow_up,omitempty"` // where the platform takes it, while it does
	}
	stop struct {
		Reason string `json:"reason"`
	}
	ping struct{}
)

// What the program says, beside event and cursor.
type (
	hello struct {
		Protocol int             `json:"protocol"`
		Name     string          `json:"name"`
		Version  string          `json:"version"`
		Can      []string        `json:"can"`    // the ops of send that it takes
		Limits   channel.Limits  `json:"limits"` // of its platform
		Writes   channel.Writing `json:"writes"` // what its platform reads
	}
	ready struct {
		Identity string `json:"identity"`
	}
	status struct {
		State      string  `json:"state"`
		Text       string  `json:"text"`
		RetryAfter float64 `json:"retry_after"` // seconds
	}
	result struct {
		ID         string          `json:"id"`
		MessageID  string          `json:"message_id"`
		Raw        json.RawMessage `json:"raw"`
		Error      string          `json:"error"`
		Outcome    string          `json:"outcome"`
		RetryAfter float64         `json:"retry_after"` // seconds
		Result     json.RawMessage `json:"result"`      // of a call
		Scope      string          `json:"scope"`       // all: retry_after is for everything; else for the conversation
	}
	remark struct {
		Level string `json:"level"`
		Text  string `json:"text"`
	}
)

// line writes one of our lines, its characters unescaped.
func line(kind string, body any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]any{kind: body}); err != nil {
		panic(err) // strings, and JSON that was valid when it was read
	}
	return b.Bytes()
}

// parse reads one of the program's lines.
func parse(b []byte) (kind string, body json.RawMessage, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return "", nil, fmt.Errorf("is no JSON object")
	}
	if len(all) != 1 {
		return "", nil, fmt.Errorf("has %d keys; it must have one, which says what it is", len(all))
	}
	for k, v := range all {
		kind, body = k, v
	}
	return kind, body, nil
}

// position is the cursor as stored. What another type has left there is none.
type position struct {
	Exec json.RawMessage `json:"exec"`
}

// storedCursor wraps a program's cursor for the store; nil stays nil.
func storedCursor(cursor json.RawMessage) []byte {
	if len(cursor) == 0 {
		return nil
	}
	b, err := json.Marshal(position{cursor})
	if err != nil {
		return nil // it is valid JSON
	}
	return b
}

// startCursor is what a program is given back.
func startCursor(link *channel.Link) json.RawMessage {
	var at position
	if json.Unmarshal(link.Cursor(), &at) != nil {
		return nil
	}
	return at.Exec
}
