package mqtt

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

const (
	// heardMin is how many messages are remembered in any case, because a broker that
	// is killed may forget our last acknowledgements.
	heardMin = 100
	// heardMax bounds what is remembered of messages that the broker may repeat, in
	// stretches: a stretch takes some four bytes of the cursor, which is a part of the
	// page that every commit writes. What a broker sends before we acknowledge would be
	// a hundred messages; a widespread one sends all that waits for us, ten thousands of
	// them, and would take no more than one stretch for each time around. One that picks
	// its packet ids at random keeps to the hundred.
	heardMax = 2048
	// proofEvery is after how many acknowledgements we ask whether they have arrived.
	proofEvery = 64
)

// heard is what the broker has sent and may send again: the messages that it may
// not know to be acknowledged, in the order in which it sent them, with the numbers
// of their events.
//
// That an acknowledgement has arrived is known once the broker answers a ping that
// was sent after it, since it takes our packets in their order.
type heard struct {
	all   []stretch
	total int    // messages in all of them
	old   int    // how many of them, the first, this connection has not heard yet
	here  uint64 // messages that this connection has heard
	fresh uint64 // how many of them had come when one came that is no repetition; 0 = none yet
}

// memory is a message: its packet id, and the number that its event has.
type memory struct {
	id  uint16
	run string
	n   uint64
}

// eventID is the id of the event of a message. The content is a part of it: what comes
// under a packet id that we remember, and says something else, is another event. Six
// bytes of its hash are enough beside an equal packet id, in a packet that the broker
// itself calls a repetition.
func (m memory) eventID(of message) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d:%s", len(of.topic), of.topic)
	_, _ = h.Write(of.payload) // a hash takes everything
	return m.run + ":" + strconv.FormatUint(m.n, 10) + ":" + hex.EncodeToString(h.Sum(nil)[:6])
}

// stretch are messages of one term whose numbers and whose packet ids follow on each
// other, as most brokers count.
type stretch struct {
	first memory
	count int // 1 at least; no packet id passes 65535
}

func (s stretch) at(k int) memory {
	return memory{s.first.id + uint16(k), s.first.run, s.first.n + uint64(k)} //nolint:gosec // k is below count
}

// holds finds a packet id.
func (s stretch) holds(id uint16) (k int, ok bool) {
	k = int(id) - int(s.first.id)
	return k, k >= 0 && k < s.count
}

// follows reports whether a message would be the stretch's next.
func (s stretch) follows(m memory) bool {
	return int(m.id) == int(s.first.id)+s.count && m.run == s.first.run && m.n == s.first.n+uint64(s.count) //nolint:gosec // a count
}

// from is the rest of a stretch that begins with its kth message.
func (s stretch) from(k int) stretch { return stretch{s.at(k), s.count - k} }

// add remembers a message that is new.
func (h *heard) add(m memory, repeated bool) {
	if h.here++; !repeated && h.fresh == 0 {
		h.fresh = h.here
	}
	h.push(m)
}

// push puts a message behind all others that this connection has heard.
func (h *heard) push(m memory) {
	if last := len(h.all) - 1; h.total > h.old && h.all[last].follows(m) {
		h.all[last].count++
	} else {
		h.all = append(h.all, stretch{m, 1})
	}
	h.total++
	for len(h.all) > heardMax {
		h.drop(h.all[0].count)
	}
}

// recall finds the message that is repeated, and takes note that it came again. Of
// equal packet ids the newest counts: one is used again once its message was
// acknowledged.
func (h *heard) recall(id uint16) (memory, bool) {
	for i, s := range slices.Backward(h.all) {
		k, ok := s.holds(id)
		if !ok {
			continue
		}
		h.here++
		h.remove(i, k)
		h.push(s.at(k))
		return s.at(k), true
	}
	return memory{}, false
}

// remove takes the kth message out of the ith stretch.
func (h *heard) remove(i, k int) {
	before := k
	for _, s := range h.all[:i] {
		before += s.count
	}
	if before < h.old {
		h.old--
	}
	h.total--
	switch s := h.all[i]; {
	case s.count == 1:
		h.all = slices.Delete(h.all, i, i+1)
	case k == 0:
		h.all[i] = s.from(1)
	default:
		h.all[i].count = k
		if k < s.count-1 {
			h.all = slices.Insert(h.all, i+1, s.from(k+1))
		}
	}
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
	unproven := int(min(h.here-min(acked, h.here), uint64(h.total))) //nolint:gosec // at most total
	n := h.total - max(unproven, heardMin)
	if n <= 0 {
		return false
	}
	h.drop(n)
	return true
}

// drop forgets the n oldest.
func (h *heard) drop(n int) {
	h.total -= n
	h.old = max(0, h.old-n)
	i := 0
	for ; n > 0 && n >= h.all[i].count; i++ {
		n -= h.all[i].count
	}
	if n > 0 {
		h.all[i] = h.all[i].from(n)
	}
	h.all = append(h.all[:0], h.all[i:]...)
}

// kept are stretches of one term, as the cursor keeps them: of each, the number and
// the packet id of its first message, less what would follow the one before, and its
// length, as variable-length integers.
type kept struct {
	Run string `json:"run"`
	IDs []byte `json:"ids"`
}

// append writes stretches as JSON. It is called for every message, and so written
// by hand: a tenth of the time, when a thousand are remembered.
func (h *heard) append(b []byte) []byte {
	b = append(b, '[')
	var ids []byte
	for i := 0; i < len(h.all); {
		run := h.all[i].first.run
		ids = ids[:0]
		for n, id := uint64(0), int64(0); i < len(h.all) && h.all[i].first.run == run; i++ {
			s := h.all[i]
			ids = binary.AppendVarint(ids, int64(s.first.n-n)) //nolint:gosec // a difference, which wraps back
			ids = binary.AppendVarint(ids, int64(s.first.id)-id)
			ids = binary.AppendUvarint(ids, uint64(s.count))                    //nolint:gosec // a count
			n, id = s.first.n+uint64(s.count), int64(s.first.id)+int64(s.count) //nolint:gosec // a count
		}
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(append(b, `{"run":`...), run) // hexadecimal digits
		b = base64.StdEncoding.AppendEncode(append(b, `,"ids":"`...), ids)
		b = append(b, `"}`...)
	}
	return append(b, ']')
}

var errHeard = errors.New("read what was heard: it is cut short, or no packet ids")

// UnmarshalJSON reads them. All of them are of earlier connections.
func (h *heard) UnmarshalJSON(b []byte) error {
	var groups []kept
	if err := json.Unmarshal(b, &groups); err != nil {
		return fmt.Errorf("read what was heard: %w", err)
	}
	*h = heard{}
	for _, g := range groups {
		for n, id := uint64(0), int64(0); len(g.IDs) > 0; {
			ahead, wide := binary.Varint(g.IDs)
			g.IDs = g.IDs[max(0, wide):]
			beyond, wider := binary.Varint(g.IDs)
			g.IDs = g.IDs[max(0, wider):]
			count, widest := binary.Uvarint(g.IDs)
			g.IDs = g.IDs[max(0, widest):]
			n += uint64(ahead) //nolint:gosec // a difference, which wraps back
			id += beyond
			if wide <= 0 || wider <= 0 || widest <= 0 || id < 1 || id > math.MaxUint16 || count < 1 || count > math.MaxUint16 || id+int64(count)-1 > math.MaxUint16 {
				return errHeard
			}
			h.all = append(h.all, stretch{memory{uint16(id), g.Run, n}, int(count)})
			h.total += int(count)
			n, id = n+count, id+int64(count)
		}
	}
	h.old = h.total
	for len(h.all) > heardMax {
		h.drop(h.all[0].count)
	}
	return nil
}
