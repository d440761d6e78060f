package channel

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Message is what the user's program asks us to send to a platform.
type Message struct {
	ID           string // ours, stable over retries: the platform's idempotency key where it has one
	Installation string // who speaks: the link's own, or a rider on it
	Op           string // send, edit, delete, react, unreact, typing
	Conversation string
	Thread       string
	MessageID    string // what an edit, a reaction or a reply refers to
	Text         string
	Format       string          // how Text was written: Plain, which "" is too, or Markdown; a Sender is given it as it Writes
	Native       json.RawMessage // merged into the platform's call
	FollowUp     Secret          // where the platform takes this answer, while it does; empty = the ordinary way
}

// The formats of a text.
const (
	Plain    = "plain"    // each character stands for itself
	Markdown = "markdown" // CommonMark
)

// CheckFormat says why format is none; "" stands for Plain.
func CheckFormat(format string) error {
	if !slices.Contains([]string{"", Plain, Markdown}, format) {
		return fmt.Errorf("format: must be plain or markdown (got %q)", format)
	}
	return nil
}

// Marked reports whether the text is markup: whatever its format says, that of a
// reaction is an emoji.
func (m Message) Marked() bool {
	return m.Format == Markdown && (m.Op == "send" || m.Op == "edit")
}

// Faults says what m lacks whatever its type, in the words of its keys; none: a type
// that can do what it asks for can send it.
func (m Message) Faults() (faults []string) {
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	fault(m.Conversation == "", "conversation: is missing")
	if err := CheckFormat(m.Format); err != nil {
		faults = append(faults, err.Error())
	}
	fault(m.MessageID == "" && !slices.Contains([]string{"send", "typing"}, m.Op), "message_id: is missing; it says what to %s", m.Op)
	fault(m.Text == "" && len(m.Native) == 0 && slices.Contains([]string{"send", "edit"}, m.Op), "text and native are empty; there is nothing to %s", m.Op)
	fault(m.Text == "" && slices.Contains([]string{"react", "unreact"}, m.Op), "text: is missing; it is the emoji to %s with", m.Op)
	return faults
}

// Does reports whether a message of the named op can be sent. known is false for
// what is no op.
func (c Capabilities) Does(op string) (can, known bool) {
	switch op {
	case "send":
		return c.Send, true
	case "edit":
		return c.Edit, true
	case "delete":
		return c.Delete, true
	case "react", "unreact":
		return c.React, true
	case "typing":
		return c.Typing, true
	default:
		return false, false
	}
}

// Lacks says what of m cannot be done, to stand behind the type's name ("cannot
// edit"); "" = all of it can.
func (c Capabilities) Lacks(m Message) string {
	can, _ := c.Does(m.Op)
	switch {
	case !can:
		return "cannot " + m.Op
	case m.Thread != "" && !c.Threads:
		return "knows no threads: leave thread out"
	case len(m.Native) > 0 && !c.Native:
		return "takes no native call: leave native out"
	}
	return ""
}
