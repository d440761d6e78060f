package channel

import (
	"encoding/json"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a credential in a type's config. The file holds only a reference to
// it; it is resolved when the channel is built. It prints, logs and marshals as
// "[redacted]".
type Secret struct{ value string }

// NewSecret makes a Secret of its value, for tests and embedders.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns the value. Use it where the platform needs it and nowhere else.
func (s Secret) Reveal() string { return s.value }

func (s Secret) String() string { return redacted }

// GoString keeps %#v from printing the value.
func (s Secret) GoString() string { return redacted }

// LogValue keeps slog from printing the value.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON keeps the value out of every answer.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }

// UnmarshalJSON takes the resolved value.
func (s *Secret) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &s.value) }

// Text is a value that may be a secret, such as a header's: a literal string in
// the file, or a reference. It is treated as a secret everywhere.
type Text struct{ value string }

// NewText makes a Text of its value, for tests and embedders.
func NewText(value string) Text { return Text{value} }

// Reveal returns the value.
func (t Text) Reveal() string { return t.value }

// MaybeSecret marks a type whose value the file may hold as a literal.
func (t Text) MaybeSecret() {}

func (t Text) String() string { return redacted }

// GoString keeps %#v from printing the value.
func (t Text) GoString() string { return redacted }

// LogValue keeps slog from printing the value.
func (t Text) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON keeps the value out of every answer.
func (t Text) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }

// UnmarshalJSON takes the resolved value.
func (t *Text) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &t.value) }
