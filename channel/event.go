package channel

import (
	"encoding/json"
	"time"
)

// Event is one fact heard from a platform, normalised. Raw carries the
// platform's own JSON, Payload its bytes when they are not JSON; an event has
// at most one of the two.
type Event struct {
	ID           string          `json:"id"`                     // the platform's own id: the dedupe key within the installation; never empty
	Type         string          `json:"type"`                   // message, message.edited, command, action, reaction, membership, device, raw, …
	Installation string          `json:"installation,omitempty"` // "" = the link's own; a rider's id for one of its workspaces
	Workspace    string          `json:"workspace,omitempty"`    // Slack team, Discord guild, Feishu tenant
	MessageID    string          `json:"message_id,omitempty"`   // what replies, reactions and edits refer to
	Time         time.Time       `json:"time,omitzero"`          // the platform's; zero = unknown
	Conversation Ref             `json:"conversation,omitzero"`
	Sender       Ref             `json:"sender,omitzero"`
	Thread       string          `json:"thread,omitempty"`
	ReplyTo      string          `json:"reply_to,omitempty"`
	Text         string          `json:"text,omitempty"`      // as sent
	Body         string          `json:"body,omitempty"`      // without the leading mention
	Addressed    bool            `json:"addressed,omitempty"` // a direct message, a mention, a command
	Mentions     []string        `json:"mentions,omitempty"`
	Command      *Command        `json:"command,omitempty"`
	Action       *Action         `json:"action,omitempty"`
	Reaction     *Reaction       `json:"reaction,omitempty"`
	Device       *Device         `json:"device,omitempty"`
	Attachments  []Attachment    `json:"attachments,omitempty"`
	Late         bool            `json:"late,omitempty"` // heard after a gap
	Payload      []byte          `json:"payload,omitempty"`
	ContentType  string          `json:"content_type,omitempty"`
	Raw          json.RawMessage `json:"raw,omitempty"` // last: what reads a stored event may cut it off
	FollowUp     FollowUp        `json:"-"`             // where the answers go for a while: never a part of what is stored or shown
}

// Ref names a conversation or a sender.
type Ref struct {
	ID    string `json:"id,omitempty"`
	Kind  string `json:"kind,omitempty"`
	Title string `json:"title,omitempty"` // a conversation's
	Name  string `json:"name,omitempty"`  // a sender's
	Bot   bool   `json:"bot,omitempty"`
	Self  bool   `json:"self,omitempty"` // our own identity on the platform
}

// Command is a slash command or its like.
type Command struct {
	Name string `json:"name"`
	Args string `json:"args,omitempty"`
}

// Action is a pressed button, a chosen option, a submitted form.
type Action struct {
	ID      string          `json:"id"`
	Value   string          `json:"value,omitempty"`
	Values  json.RawMessage `json:"values,omitempty"`
	Expires time.Time       `json:"expires,omitzero"`
}

// Reaction is an emoji put on a message or taken off it.
type Reaction struct {
	Emoji   string `json:"emoji"`
	Removed bool   `json:"removed,omitempty"`
}

// Device is what a device's message says of itself beside its topic, which is the
// conversation, and its body.
type Device struct {
	QoS        int               `json:"qos"`
	Retain     bool              `json:"retain"` // an old message, kept for who subscribes
	Properties map[string]string `json:"properties,omitempty"`
}

// Attachment is a reference to a file, never its bytes.
type Attachment struct {
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
	Size int64  `json:"size,omitempty"` // bytes; 0 = unknown
	URL  string `json:"url,omitempty"`
}

// Batch is what one Accept commits: its events and the cursor after them, all
// or nothing. A nil Cursor leaves the stored one unchanged. A batch without
// events stays in memory until the next events, the term's end, or five
// minutes, unless Urgent: an idle stream whose cursor merely moves writes
// nothing.
type Batch struct {
	Events []Event
	Cursor []byte
	Urgent bool
}
