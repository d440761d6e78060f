package mqtt

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

const (
	// heardMin is how many messages are remembered in any case, because a broker that
	// is killed may forget our last acknowledgements. They take a kilobyte of the
	// cursor, which is a part of the page that every commit writes.
	heardMin = 100
	// heardMax bounds what is remembered of messages that the broker may repeat. It
	// should be the number that it may send before we acknowledge, but a widespread
	// one has been seen to exceed that ten times, growing with the length of a burst.
	heardMax = 2048
	// proofEvery is after how many acknowledgements we ask whether they have arrived.
	proofEvery = 64
)

// An entry is a packet id and the beginning of a hash of topic and payload. Six
// bytes of it are enough: it is looked at only beside an equal packet id, in a
// packet that the broker itself calls a repetition.
type entry [8]byte

func entryOf(id uint16, m message) entry {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d:%s", len(m.topic), m.topic)
	_, _ = h.Write(m.payload) // a hash takes everything
	var e entry
	binary.BigEndian.PutUint16(e[:2], id)
	copy(e[2:], h.Sum(nil))
	return e
}

// heard is what the broker has sent and may send again: the messages that it may
// not know to be acknowledged, in the order in which it sent them, with the ids
// of their events.
//
// That an acknowledgement has arrived is known once the broker answers a ping that
// was sent after it, since it takes our packets in their order.
type heard struct {
	all   []memory
	old   int    // how many of them, the first, this connection has not heard yet
	here  uint64 // messages that this connection has heard
	fresh uint64 // how many of them had come when one came that is no repetition; 0 = none yet
}

type memory struct {
	entry
	run string // of the event's id
	n   uint64
}

func (m memory) id() string { return m.run + ":" + strconv.FormatUint(m.n, 10) }

// add remembers a message that is new.
func (h *heard) add(m memory, repeated bool) {
	if h.here++; !repeated && h.fresh == 0 {
		h.fresh = h.here
	}
	if h.all = append(h.all, m); len(h.all) > heardMax {
		h.drop(len(h.all) - heardMax)
	}
}

// recall finds the message that is repeated, and takes note that it came again. Of
// equal packet ids the newest counts: one is used again once its message was
// acknowledged.
func (h *heard) recall(e entry) (memory, bool) {
	for i, m := range slices.Backward(h.all) {
		if m.entry[0] != e[0] || m.entry[1] != e[1] {
			continue
		}
		if m.entry != e {
			return memory{}, false
		}
		h.here++
		copy(h.all[i:], h.all[i+1:])
		h.all[len(h.all)-1] = m
		if i < h.old {
			h.old--
		}
		return m, true
	}
	return memory{}, false
}

// prove forgets what the broker will not repeat, now that it knows the first acked
// messages of this connection to be acknowledged, and reports whether there was
// any. What an earlier connection had heard comes again before everything that is
// new, or not at all.
func (h *heard) prove(acked uint64) bool {
	quiet := acked == h.here
	if h.old > 0 && !quiet && (h.fresh == 0 || acked < h.fresh) {
		return false
	}
	unproven := int(min(h.here-min(acked, h.here), uint64(len(h.all))))
	n := len(h.all) - max(unproven, heardMin)
	if n <= 0 {
		return false
	}
	h.drop(n)
	return true
}

// drop forgets the n oldest.
func (h *heard) drop(n int) {
	h.all = append(h.all[:0], h.all[n:]...)
	h.old = max(0, h.old-n)
}

// stretch are consecutive messages of one term, as the cursor keeps them.
type stretch struct {
	Run  string `json:"run"`
	From uint64 `json:"from"` // the number of the first
	Of   []byte `json:"of"`   // their entries
}

// append writes stretches as JSON. It is called for every message, and so written
// by hand: a tenth of the time, when a thousand are remembered.
func (h *heard) append(b []byte) []byte {
	b = append(b, '[')
	of := make([]byte, 0, len(h.all)*len(entry{}))
	for i := 0; i < len(h.all); {
		first := h.all[i]
		of = of[:0]
		for n := first.n; i < len(h.all) && h.all[i].run == first.run && h.all[i].n == n; n++ {
			of = append(of, h.all[i].entry[:]...)
			i++
		}
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(append(b, `{"run":`...), first.run) // hexadecimal digits
		b = strconv.AppendUint(append(b, `,"from":`...), first.n, 10)
		b = base64.StdEncoding.AppendEncode(append(b, `,"of":"`...), of)
		b = append(b, `"}`...)
	}
	return append(b, ']')
}

// UnmarshalJSON reads them. All of them are of earlier connections.
func (h *heard) UnmarshalJSON(b []byte) error {
	var stretches []stretch
	if err := json.Unmarshal(b, &stretches); err != nil {
		return fmt.Errorf("read what was heard: %w", err)
	}
	*h = heard{}
	for _, s := range stretches {
		for i := 0; len(s.Of) >= len(entry{}); i++ {
			h.all = append(h.all, memory{entry(s.Of[:len(entry{})]), s.Run, s.From + uint64(i)})
			s.Of = s.Of[len(entry{}):]
		}
	}
	if len(h.all) > heardMax {
		h.all = h.all[len(h.all)-heardMax:]
	}
	h.old = len(h.all)
	return nil
}
