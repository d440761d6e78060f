package outbound

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"leasehold/channel"
	"leasehold/delivery"
)

// State of a message.
type State int

// The states of a message, as stored. Those that wait come first: an index holds
// only those.
const (
	Queued  State = iota // waits for the connection, for its turn, or for a rate limit
	Sending              // written before the platform is called
	Sent                 // the platform took it
	Refused              // the platform will never take it
	Expired              // never sent: its time was over
	Unknown              // it may have been sent: the answer was lost
)

// States are the names of all states, as they are shown and filtered by.
var States = []string{"queued", "sending", "sent", "refused", "expired", "unknown"}

// String returns the state's name.
func (s State) String() string { return States[s] }

// Done reports whether nothing more becomes of a message.
func (s State) Done() bool { return s > Sending }

// DefaultExpiry is how long a message may wait to be sent: an answer that is a
// quarter of an hour late is out of place in most conversations.
const DefaultExpiry = 15 * time.Minute

// typingExpiry is that of a sign that somebody types: platforms take it away after five
// to ten seconds, and one that comes later is a lie.
const typingExpiry = 10 * time.Second

// ExpiryOf is how long a message of an op may wait to be sent, unless whoever posts it
// says so.
func ExpiryOf(op string) time.Duration {
	if op == "typing" {
		return typingExpiry
	}
	return DefaultExpiry
}

// Message is a message as it is posted. Its ID is made by eventid.NewMessage, its
// Installation speaks, if need be through the one that it rides on.
type Message struct {
	channel.Message

	// IdempotencyKey names it to whoever posts it: of two with the same key and
	// installation only the first is stored. "" = it has none.
	IdempotencyKey string
	ExpiresIn      time.Duration // from now, by the store's clock
	Answers        int64         // the seq of the event that it answers; 0 = none
}

// Orphaned is why a reply of a removed installation is refused.
const Orphaned = "its installation was removed"

// Answering is r as it is posted: with the mark that the event of this seq is
// delivered.
func Answering(seq int64, r delivery.Reply) Message {
	return Message{Message: r.Message, IdempotencyKey: r.Key, ExpiresIn: cmp.Or(r.ExpiresIn, ExpiryOf(r.Op)), Answers: seq}
}

// Receipt is what a platform said when it took a message, as it is stored and shown.
// That of a text that was too long for one has what it said of each part so far; its
// MessageID is the first one's.
type Receipt struct {
	MessageID string          `json:"message_id,omitempty"` // the platform's
	Raw       json.RawMessage `json:"raw,omitempty"`
	Parts     []Receipt       `json:"parts,omitempty"`
}

// Letter is a message with how far it has come.
type Letter struct {
	channel.Message

	// Parts are the texts that it is sent as, as the platform reads them, from when it
	// turned out that it takes several; nil = one, as far as is known.
	Parts []string
	Taken []Receipt // of the parts that were sent, in their order
}

// body is what a store keeps of a message without looking into it. Native is a
// string: it stays what it was to the byte.
type body struct {
	Text   string   `json:"text,omitempty"`
	Format string   `json:"format,omitempty"` // left out when it is plain
	Native string   `json:"native,omitempty"`
	Parts  []string `json:"parts,omitempty"` // see Letter
}

// EncodeBody writes what of a message a store keeps as one value.
func EncodeBody(m channel.Message) ([]byte, error) { return EncodeLetter(Letter{Message: m}) }

// EncodeLetter writes the same with the parts of the message.
func EncodeLetter(m Letter) ([]byte, error) {
	if m.Format == channel.Plain {
		m.Format = ""
	}
	return plainJSON(body{m.Text, m.Format, string(m.Native), m.Parts})
}

// DecodeBody fills in what EncodeBody wrote, or who sends it has put in its place.
func DecodeBody(b []byte, m *Letter) error {
	var v body
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("read the body of message %s: %w", m.ID, err)
	}
	m.Text, m.Format, m.Native, m.Parts = v.Text, cmp.Or(v.Format, channel.Plain), nil, v.Parts
	if v.Native != "" {
		m.Native = json.RawMessage(v.Native)
	}
	return nil
}

// DecodeProgress fills in what the stored receipt of a message says of its parts; it is
// empty before the first was sent.
func DecodeProgress(receipt []byte, m *Letter) error {
	m.Taken = nil
	if len(receipt) == 0 {
		return nil
	}
	var v Receipt
	if err := json.Unmarshal(receipt, &v); err != nil {
		return fmt.Errorf("read the receipt of message %s: %w", m.ID, err)
	}
	m.Taken = v.Parts
	return nil
}

// EncodeReceipt writes a receipt as one value. What a platform said that is no JSON
// is left out.
func EncodeReceipt(r channel.Receipt) ([]byte, error) { return plainJSON(receiptOf(r)) }

func receiptOf(r channel.Receipt) Receipt {
	out := Receipt{MessageID: r.MessageID}
	if json.Valid(r.Raw) {
		out.Raw = r.Raw
	}
	return out
}

// plainJSON is JSON without escapes for HTML.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
