package channel

import "fmt"

// Writing says what a platform reads and how much of it one message may have. The zero
// Writing is plain text of any length.
type Writing struct {
	// Markup is plain, markdown (CommonMark), mrkdwn (Slack's), discord, telegram (its
	// HTML) or matrix (its HTML); "" = plain. A message's text is written in it, whatever
	// its format was, before Send is called.
	Markup string `json:"markup,omitempty"`
	// Limit is how long the text of one message may be; 0 = as long as it likes, else at
	// least 100. A longer one is sent as several messages.
	Limit int `json:"limit,omitempty"`
	// Unit is what Limit counts: bytes of UTF-8, utf16 for units of UTF-16, or
	// characters for code points; "" = bytes, of which no text has fewer than of the others.
	Unit string `json:"unit,omitempty"`
}

// String says how long the text of one message may be; "" = as long as it likes.
func (w Writing) String() string {
	switch unit := w.Unit; {
	case w.Limit == 0:
		return ""
	case unit == "utf16":
		return fmt.Sprintf("%d units of UTF-16", w.Limit)
	case unit == "":
		return fmt.Sprintf("%d bytes", w.Limit)
	default:
		return fmt.Sprintf("%d %s", w.Limit, unit)
	}
}

// Writer is a Sender whose Writing is not that of its type: it depends on its config, or
// the platform tells it. It is asked for each message.
type Writer interface {
	Writes() Writing
}
