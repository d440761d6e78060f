package delivery

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"leasehold/channel"
)

// Node is what an envelope says of the box that sends it.
type Node struct {
	Name   string            `json:"name,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// Timestamp is how an envelope writes a time: RFC 3339, UTC, milliseconds always.
const Timestamp = "2006-01-02T15:04:05.000Z07:00"

// envelope is what a target receives: the body convention of Standard Webhooks.
// What is empty is left out, but the three booleans that every program asks for.
type envelope struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"` // the platform's time, else when it was accepted
	Data      data   `json:"data"`
}

type data struct {
	ID           string       `json:"id"` // ours
	Installation installation `json:"installation"`
	Node         Node         `json:"node,omitzero"`
	Workspace    string       `json:"workspace,omitempty"`
	MessageID    string       `json:"message_id,omitempty"`
	Conversation conversation `json:"conversation,omitzero"`
	Thread       string       `json:"thread,omitempty"`
	Sender       sender       `json:"sender,omitzero"`
	ReplyTo      string       `json:"reply_to,omitempty"`
	Text         string       `json:"text,omitempty"`
	Body         string       `json:"body,omitempty"`
	Addressed    bool         `json:"addressed"`
	Mentions     []string     `json:"mentions,omitempty"`

	Command  *channel.Command `json:"command,omitempty"`
	Action   *action          `json:"action,omitempty"`
	Reaction *reaction        `json:"reaction,omitempty"`
	Device   *channel.Device  `json:"device,omitempty"`

	Attachments []channel.Attachment `json:"attachments,omitempty"`
	Late        bool                 `json:"late"`
	Reply       string               `json:"reply,omitempty"` // where an answer is posted, below the API's address

	// Bytes that are not JSON. They are a string in either encoding.
	Payload     *string `json:"payload,omitempty"`
	Encoding    string  `json:"encoding,omitempty"` // utf8, base64
	ContentType string  `json:"content_type,omitempty"`

	// Last comes raw, what the platform itself sent; see seal.
}

type installation struct {
	ID     string            `json:"id"`
	Type   string            `json:"type"`
	Labels map[string]string `json:"labels,omitempty"`
}

type conversation struct {
	ID    string `json:"id,omitempty"`
	Kind  string `json:"kind,omitempty"`
	Title string `json:"title,omitempty"`
}

type sender struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	Bot  bool   `json:"bot"`
	Self bool   `json:"self,omitempty"`
}

type action struct {
	ID        string          `json:"id"`
	Value     string          `json:"value,omitempty"`
	Values    json.RawMessage `json:"values,omitempty"`
	MessageID string          `json:"message_id,omitempty"`
	Expires   string          `json:"expires,omitempty"`
}

type reaction struct {
	Emoji     string `json:"emoji"`
	Removed   bool   `json:"removed"`
	MessageID string `json:"message_id,omitempty"`
}

// seal makes the body that a target receives of a stored event, and returns the
// event's type. The bytes are the same for every attempt, so that whoever
// receives it twice can compare. replies: who receives it may answer, where there is a
// conversation to answer in.
func seal(ev Event, node Node, raw, replies bool) (body []byte, typ string, err error) {
	e, err := unsealed(ev.Body)
	if err != nil {
		return nil, "", fmt.Errorf("read event %s: %w", ev.ID, err)
	}
	env := envelope{Type: e.Type, Timestamp: stamp(e.Time), Data: data{
		ID:           ev.ID,
		Installation: installation{ev.Installation, ev.ChannelType, ev.Labels},
		Node:         node,
		Workspace:    e.Workspace,
		MessageID:    e.MessageID,
		Conversation: conversation{e.Conversation.ID, e.Conversation.Kind, e.Conversation.Title},
		Thread:       e.Thread,
		Sender:       sender{e.Sender.ID, e.Sender.Name, e.Sender.Bot, e.Sender.Self},
		ReplyTo:      e.ReplyTo,
		Text:         e.Text,
		Body:         e.Body,
		Addressed:    e.Addressed,
		Mentions:     e.Mentions,
		Command:      e.Command,
		Device:       e.Device,
		Attachments:  e.Attachments,
		Late:         e.Late,
		ContentType:  e.ContentType,
	}}
	if replies && e.Conversation.ID != "" {
		env.Data.Reply = "/v1/events/" + ev.ID + "/reply"
	}
	if e.Time.IsZero() {
		env.Timestamp = stamp(ev.AcceptedAt)
	}
	if a := e.Action; a != nil {
		env.Data.Action = &action{a.ID, a.Value, a.Values, e.MessageID, stamp(a.Expires)}
	}
	if r := e.Reaction; r != nil {
		env.Data.Reaction = &reaction{r.Emoji, r.Removed, e.MessageID}
	}
	if e.Payload != nil {
		env.Data.Payload, env.Data.Encoding = payload(e.Payload)
	}
	if body, err = marshal(env, len(ev.Body)+512); err != nil {
		return nil, "", err
	}
	if raw && len(e.Raw) > 0 { // put in as it is: it is most of an event, and was checked when the event was read
		body = append(append(append(body[:len(body)-len("}}")], `,"raw":`...), e.Raw...), "}}"...)
	}
	return body, e.Type, nil
}

// payload keeps what is text readable. A NUL is valid UTF-8 and valid JSON, but
// too many receivers' databases refuse it.
func payload(b []byte) (text *string, encoding string) {
	s := string(b)
	if utf8.ValidString(s) && !strings.ContainsRune(s, 0) {
		return &s, "utf8"
	}
	s = base64.StdEncoding.EncodeToString(b)
	return &s, "base64"
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(Timestamp)
}

// marshal is json.Marshal without escapes for HTML: text stays what people typed.
// It makes room for size bytes at once.
func marshal(v any, size int) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, size))
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write envelope: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
