// Package eventid writes the store's numbers as the ids that people see, and
// reads them back.
//
// An event's id is its seq and nothing else, so that no column and no index is
// spent on it. A webhook id begins with its event's seq, so that it is found
// without an index, which its random part would turn into one dirty page per
// delivery; that part makes it unique over stores, too, when a lost database is
// begun anew and counts from one again. Both sort as their events do.
//
// A message's id is made before the store has seen it, so that posting it twice is
// no risk: it begins with the time, which keeps the index that finds it compact.
package eventid

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"
)

const (
	eventPrefix   = "evt_"
	webhookPrefix = "msg_"
	messagePrefix = "out_"
	systemPrefix  = "sys_"

	seqBytes    = 6  // of a webhook id: 2^48 events, a thousand a second for nine thousand years
	timeBytes   = 6  // of a message's id: milliseconds for nine thousand years
	randomBytes = 10 // of either: 80 bits
)

// base32hex keeps the order of the bytes; lower case is what the ids of other
// systems look like.
var encoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// Event returns the id of the event with this seq.
func Event(seq int64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(seq))
	return eventPrefix + encoding.EncodeToString(b[:])
}

// Seq returns the seq that Event wrote; false: id is not one of its ids.
func Seq(id string) (int64, bool) {
	b, ok := decode(id, eventPrefix, 8)
	if !ok {
		return 0, false
	}
	seq := int64(binary.BigEndian.Uint64(b))
	return seq, seq > 0
}

// NewWebhook makes a webhook id for a delivery of the event with this seq.
func NewWebhook(seq int64) string {
	var b [8 + randomBytes]byte
	binary.BigEndian.PutUint64(b[:8], uint64(seq))
	_, _ = rand.Read(b[8:]) // it never fails: crypto/rand ends the program instead
	return webhookPrefix + encoding.EncodeToString(b[8-seqBytes:])
}

// WebhookSeq returns the seq of the event whose delivery has this webhook id;
// false: id is not one that NewWebhook could have made.
func WebhookSeq(id string) (int64, bool) {
	b, ok := decode(id, webhookPrefix, seqBytes+randomBytes)
	if !ok {
		return 0, false
	}
	seq := int64(binary.BigEndian.Uint64(append([]byte{0, 0}, b[:seqBytes]...)))
	return seq, seq > 0
}

// NewMessage makes the id of a message that is posted now. Those of later
// milliseconds sort behind it.
func NewMessage(now time.Time) string {
	var b [8 + randomBytes]byte
	binary.BigEndian.PutUint64(b[:8], uint64(max(now.UnixMilli(), 0)))
	_, _ = rand.Read(b[8:]) // as above
	return messagePrefix + encoding.EncodeToString(b[8-timeBytes:])
}

// IsMessage reports whether NewMessage could have made id.
func IsMessage(id string) bool {
	_, ok := decode(id, messagePrefix, timeBytes+randomBytes)
	return ok
}

// decode reads size bytes; it refuses a second spelling of the same bytes.
func decode(id, prefix string, size int) ([]byte, bool) {
	text, ok := strings.CutPrefix(id, prefix)
	if !ok || len(text) != encoding.EncodedLen(size) {
		return nil, false
	}
	b, err := encoding.DecodeString(text)
	if err != nil || encoding.EncodeToString(b) != text {
		return nil, false
	}
	return b, true
}

// NewSystem makes the id of an event that no store has: one of the box itself.
func NewSystem() string {
	var b [randomBytes]byte
	_, _ = rand.Read(b[:]) // as above
	return systemPrefix + encoding.EncodeToString(b[:])
}

// IsSystem reports whether an event's id is one of NewSystem.
func IsSystem(id string) bool { return strings.HasPrefix(id, systemPrefix) }
