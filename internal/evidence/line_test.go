//go:build unix

package evidence_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// The packets of MQTT that a line looks at.
const (
	mqttPublish = 3
	mqttPuback  = 4
)

// line lies between the program and its broker, passes whole packets on, and keeps a
// book: of each message that the broker sends, and of each that the program
// acknowledges. What it judges by is the packets' own fields, read without any code
// of the program.
type line struct {
	t       *testing.T
	version byte   // 5, or 4 for 3.1.1
	broker  string // its address
	ln      net.Listener
	wg      sync.WaitGroup

	mu      sync.Mutex // guards what follows
	conns   map[net.Conn]bool
	dials   []time.Time
	said    []*said
	byID    map[uint16]*said // the last of each packet id
	last    time.Time        // something was sent or acknowledged
	repeats int              // messages that the broker sent again, and marked so
	waits   []*wait
	faults  []string
}

// said is a message as the broker sent it for the first time; with the mark DUP
// it is the one before it that has its packet id and its content.
type said struct {
	message
	acked bool // an acknowledgement has passed
}

// message is what was published: equal ones may be published many times, apart from
// n, which is a user property of version 5, and "" in 3.1.1, which has none.
type message struct {
	topic, payload, n string
	retain            bool
}

// newLine opens a line to a broker.
func newLine(t *testing.T, broker string, version byte) *line {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	l := &line{t: t, version: version, broker: broker, ln: ln, conns: map[net.Conn]bool{}, byID: map[uint16]*said{}}
	l.wg.Go(l.serve)
	t.Cleanup(func() {
		_ = ln.Close()
		l.mu.Lock()
		for c := range l.conns {
			_ = c.Close()
		}
		l.mu.Unlock()
		l.wg.Wait()
		for _, f := range l.faults {
			t.Error(f)
		}
	})
	return l
}

func (l *line) address() string { return l.ln.Addr().String() }

func (l *line) serve() {
	for {
		c, err := l.ln.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		l.dials = append(l.dials, time.Now())
		l.mu.Unlock()
		b, err := (&net.Dialer{Timeout: time.Second}).DialContext(l.t.Context(), "tcp", l.broker)
		if err != nil {
			_ = c.Close() // as a broker that is down does
			continue
		}
		l.own(c, b)
		both := func() {
			_ = c.Close()
			_ = b.Close()
			l.disown(c, b)
		}
		l.wg.Go(func() { defer both(); l.pass(b, c, l.heard) })
		l.wg.Go(func() { defer both(); l.pass(c, b, l.answered) })
	}
}

func (l *line) own(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.conns[c] = true
	}
}

func (l *line) disown(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		delete(l.conns, c)
	}
}

// pass hands whole packets on and looks at each: before it is written, so that
// nothing is answered that was not seen. What was not written whole has not passed.
func (l *line) pass(from, to net.Conn, look func(kind, flags byte, body []byte) (written func())) {
	in := bufio.NewReader(from)
	for {
		head, body, err := packet(in)
		if err != nil {
			return
		}
		written := look(head[0]>>4, head[0]&15, body)
		if _, err := to.Write(append(head, body...)); err != nil {
			return
		}
		written()
	}
}

// packet reads one packet: its first byte and its length, and the rest.
func packet(in *bufio.Reader) (head, body []byte, err error) {
	size := 0
	for shift := -7; ; shift += 7 {
		b, err := in.ReadByte()
		if err != nil {
			return nil, nil, err
		}
		head = append(head, b)
		if shift < 0 {
			continue
		}
		if size |= int(b&127) << shift; b < 128 {
			break
		}
		if shift == 21 {
			return nil, nil, errors.New("a packet without a length")
		}
	}
	body = make([]byte, size)
	_, err = io.ReadFull(in, body)
	return head, body, err
}

// heard books a message of the broker.
func (l *line) heard(kind, flags byte, body []byte) (written func()) {
	if kind != mqttPublish {
		return func() {}
	}
	m, id, err := l.read(flags, body)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.fault("a PUBLISH that cannot be read: %v", err)
		return func() {}
	}
	before := l.byID[id]
	if flags&8 != 0 && before != nil && before.message == m {
		l.repeats++
	} else {
		s := &said{message: m}
		l.said = append(l.said, s)
		l.byID[id] = s
	}
	l.note(mqttPublish)
	return func() {}
}

// answered books an acknowledgement of the program, once it has passed.
func (l *line) answered(kind, _ byte, body []byte) (written func()) {
	if kind != mqttPuback || len(body) < 2 {
		return func() {}
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		s := l.byID[u16(body)]
		if s == nil {
			l.fault("an acknowledgement of the packet id %d, which the broker never used", u16(body))
			return
		}
		s.acked = true
		l.note(mqttPuback)
	}
}

// note counts a packet for those who wait for one; mu is held.
func (l *line) note(kind int) {
	l.last = time.Now()
	for _, w := range l.waits {
		if w.step == fmt.Sprint(kind) {
			if w.left--; w.left == 0 {
				close(w.over)
			}
		}
	}
}

// nth is closed with the nth packet of a kind from now on.
func (l *line) nth(kind, n int) <-chan struct{} {
	w := &wait{fmt.Sprint(kind), n, make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits = append(l.waits, w)
	return w.over
}

func (l *line) fault(format string, args ...any) {
	if len(l.faults) < 20 { // one is enough to fail a test
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

// read takes a PUBLISH apart.
func (l *line) read(flags byte, body []byte) (m message, id uint16, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it is cut short: %v", r)
		}
	}()
	text := func() string {
		n := int(u16(body))
		s := string(body[2 : 2+n])
		body = body[2+n:]
		return s
	}
	m.topic, m.retain = text(), flags&1 != 0
	if flags>>1&3 != 1 {
		return m, 0, fmt.Errorf("QoS %d, and everything was published with 1", flags>>1&3)
	}
	id = u16(body)
	body = body[2:]
	if l.version == 5 {
		size, properties := varint(body)
		rest := properties[size:]
		for body = properties[:size]; len(body) > 0; {
			if body[0] != 0x26 {
				return m, 0, fmt.Errorf("the property %#x, and only user properties were published", body[0])
			}
			body = body[1:]
			if name, value := text(), text(); name == "n" {
				m.n = value
			}
		}
		body = rest
	}
	m.payload = string(body)
	return m, id, nil
}

func u16(b []byte) uint16 { return uint16(b[0])<<8 | uint16(b[1]) }

// varint reads a length: seven bits a byte, the lowest first.
func varint(b []byte) (n int, rest []byte) {
	for shift := 0; ; shift += 7 {
		n |= int(b[0]&127) << shift
		more := b[0] > 127
		if b = b[1:]; !more {
			return n, b
		}
	}
}

// spoken returns all that the broker has said.
func (l *line) spoken() []said {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]said, len(l.said))
	for i, s := range l.said {
		all[i] = *s
	}
	return all
}

// unanswered counts messages that no acknowledgement has passed for, and tells since
// when nothing happens.
func (l *line) unanswered() (n int, quiet time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.byID {
		if !s.acked {
			n++
		}
	}
	return n, time.Since(l.last)
}

// dialled counts the connections since a time.
func (l *line) dialled(since time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, _ := slices.BinarySearchFunc(l.dials, since, time.Time.Compare)
	return len(l.dials) - i
}
