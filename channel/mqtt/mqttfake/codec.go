package mqttfake

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// The types of packets.
const (
	typeConnect     = 1
	typeConnack     = 2
	typePublish     = 3
	typePuback      = 4
	typePubrec      = 5
	typePubrel      = 6
	typePubcomp     = 7
	typeSubscribe   = 8
	typeSuback      = 9
	typeUnsubscribe = 10
	typeUnsuback    = 11
	typePingreq     = 12
	typePingresp    = 13
	typeDisconnect  = 14
)

const largest = 64 << 20 // of a packet that a client may send

// readPacket reads a packet whole.
func readPacket(r io.Reader) (head byte, body []byte, err error) {
	var b [1]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, nil, err
	}
	head = b[0]
	size := 0
	for shift := 0; ; shift += 7 {
		if shift == 28 {
			return 0, nil, errors.New("a length of more than four bytes")
		}
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return 0, nil, err
		}
		if size |= int(b[0]&127) << shift; b[0] < 128 {
			break
		}
	}
	if size > largest {
		return 0, nil, fmt.Errorf("a packet of %d bytes", size)
	}
	body = make([]byte, size)
	_, err = io.ReadFull(r, body)
	return head, body, err
}

// reader takes a packet's body apart. After a fault it gives zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err == nil && len(r.b) < n {
		r.err = errors.New("the packet is too short")
	}
	if r.err != nil {
		return make([]byte, n)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte     { return r.take(1)[0] }
func (r *reader) uint16() uint16 { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) uint32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) bytes() []byte  { return r.take(int(r.uint16())) }

func (r *reader) text() string {
	b := r.bytes()
	if !utf8.Valid(b) && r.err == nil {
		r.err = errors.New("a string that is not UTF-8")
	}
	return string(b)
}

func (r *reader) length() int {
	n := 0
	for shift := 0; shift < 28; shift += 7 {
		b := r.byte()
		if n |= int(b&127) << shift; b < 128 {
			return n
		}
	}
	r.err = errors.New("a length of more than four bytes")
	return 0
}

// properties are those that a client sends and we look at.
type properties struct {
	expiry      uint32
	inFlight    uint16
	largest     uint32
	alias       uint16
	contentType string
	user        [][2]string
}

// properties reads those of version 5.
func (r *reader) properties() (p properties) {
	in := reader{b: r.take(r.length()), err: r.err}
	seen := map[byte]bool{}
	for len(in.b) > 0 && in.err == nil {
		id := in.byte()
		if seen[id] && id != 0x26 {
			in.err = fmt.Errorf("the property %#02x twice", id)
		}
		seen[id] = true
		switch id {
		case 0x11:
			p.expiry = in.uint32()
		case 0x21:
			if p.inFlight = in.uint16(); p.inFlight == 0 {
				in.err = errors.New("a receive maximum of 0")
			}
		case 0x27:
			p.largest = in.uint32()
		case 0x23:
			p.alias = in.uint16()
		case 0x03:
			p.contentType = in.text()
		case 0x26:
			p.user = append(p.user, [2]string{in.text(), in.text()})
		case 0x01, 0x17, 0x19:
			in.byte()
		case 0x02, 0x18:
			in.uint32()
		case 0x22:
			in.uint16()
		case 0x08, 0x1f:
			in.text()
		case 0x09:
			in.bytes()
		default:
			in.err = fmt.Errorf("the property %#02x", id)
		}
	}
	if r.err == nil {
		r.err = in.err
	}
	return p
}

// end wants nothing more.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%d bytes too many", len(r.b))
	}
	return r.err
}

// builder puts a packet's body together.
type builder struct{ b []byte }

func (w *builder) byte(b byte)     { w.b = append(w.b, b) }
func (w *builder) uint16(n uint16) { w.b = binary.BigEndian.AppendUint16(w.b, n) }
func (w *builder) uint32(n uint32) { w.b = binary.BigEndian.AppendUint32(w.b, n) }
func (w *builder) text(s string)   { w.uint16(uint16(len(s))); w.b = append(w.b, s...) }

// section appends another's bytes, after their length.
func (w *builder) section(x builder) {
	w.b = append(appendLength(w.b, len(x.b)), x.b...)
}

func appendLength(b []byte, n int) []byte {
	for n >= 128 {
		b = append(b, byte(n)|128)
		n >>= 7
	}
	return append(b, byte(n))
}

// packet is the body behind its head.
func (w *builder) packet(head byte) []byte {
	return append(appendLength([]byte{head}, len(w.b)), w.b...)
}
