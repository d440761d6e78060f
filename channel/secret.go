package channel

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a credential in a type's config. The file holds only a reference to
// it; it is resolved when the channel is built. It prints, logs and marshals as
// "[redacted]", whatever the verb and however deep in another value it lies.
type Secret struct{ hidden }

// NewSecret makes a Secret of its value, for tests and embedders.
func NewSecret(value string) Secret { return Secret{hide(value)} }

// Text is a value that may be a secret, such as a header's: a literal string in
// the file, or a reference. It is treated as a secret everywhere.
type Text struct{ hidden }

// NewText makes a Text of its value, for tests and embedders.
func NewText(value string) Text { return Text{hide(value)} }

// MaybeSecret marks a type whose value the file may hold as a literal.
func (t Text) MaybeSecret() {}

// hidden keeps a value behind a pointer: fmt calls no method of what lies in an
// unexported field, and prints a string there but only the address of a pointer.
// The empty value is nil, so that a zero Secret and an empty one are the same.
type hidden struct{ value *string }

func hide(value string) hidden {
	if value == "" {
		return hidden{}
	}
	return hidden{&value}
}

// Reveal returns the value. Use it where the platform needs it and nowhere else.
func (h hidden) Reveal() string {
	if h.value == nil {
		return ""
	}
	return *h.value
}

func (h hidden) String() string { return redacted }

// Format keeps every verb of fmt from printing the value, %d included.
func (h hidden) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue keeps slog from printing the value.
func (h hidden) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON keeps the value out of every answer.
func (h hidden) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }

// UnmarshalJSON takes the resolved value.
func (h *hidden) UnmarshalJSON(b []byte) error {
	var value string
	if err := json.Unmarshal(b, &value); err != nil {
		return err
	}
	*h = hide(value)
	return nil
}
