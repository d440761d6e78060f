package mqtt

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"leasehold/internal/budget"
)

const (
	// frameMax is how large a packet may be that is kept; of a larger one only the
	// head is, and the rest is read away.
	frameMax = 16 << 20
	// controlMax bounds every packet but a PUBLISH. A CONNACK may carry words.
	controlMax = 256 << 10
	// headMax is what is kept of a packet that is too large: its topic and its id.
	headMax = maxString + 16
	// pendingMax is how many bytes of messages may wait for the disk.
	pendingMax = 4 << 20
	// readSize is the buffer of a connection, small because a node has thousands,
	// and enough for twenty readings of a sensor.
	readSize = 2 << 10
	// chunk bounds what is taken on trust: a packet that says that it is large gets
	// memory as it comes.
	chunk = 64 << 10
	// writeTimeout bounds every packet that we send.
	writeTimeout = 10 * time.Second
)

// frame is a packet as it came.
type frame struct {
	kind  kind
	flags byte
	body  []byte
	size  int // of the body; more than len(body) when it was too large to be kept
}

// wire is the connection below the packets. It has one reader and many writers.
type wire struct {
	conn     net.Conn
	in       *bufio.Reader
	patience time.Duration          // with a write
	alive    func()                 // a byte came; set before the first read
	listens  func()                 // the reader listens again; set with it
	room     *budget.Budget         // of bytes of messages that wait for the disk
	open     context.Context        //nolint:containedctx // the connection's own life, not a caller's
	shut     context.CancelFunc     // of open
	sent     atomic.Pointer[moment] // when something was last written
	waiting  atomic.Bool            // the reader waits for room and hears nothing
	limit    atomic.Pointer[moment] // when writing is over, whatever the patience; nil = never

	mu     sync.Mutex // held while a packet is written; guards broken
	broken error      // of a write: what was sent of its packet must be the last
}

// moment is a time, for an atomic.Pointer.
type moment = time.Time

func newWire(conn net.Conn, patience time.Duration) *wire {
	w := &wire{conn: conn, patience: min(writeTimeout, patience), room: budget.New(pendingMax)}
	w.open, w.shut = context.WithCancel(context.Background())
	w.in = bufio.NewReaderSize(reader{w}, readSize)
	w.stamp()
	return w
}

// reader reads from the wire's connection and tells what is alive.
type reader struct{ *wire }

func (r reader) Read(b []byte) (int, error) {
	n, err := r.conn.Read(b)
	if n > 0 && r.alive != nil {
		r.alive()
	}
	return n, err
}

// hang closes the connection at once.
func (w *wire) hang() {
	w.shut()
	conn := w.conn
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secured.NetConn() // to say goodbye in TLS takes five seconds when nobody listens
	}
	_ = conn.Close()
}

// hurry ends every write, one that is under way included, after d.
func (w *wire) hurry(d time.Duration) {
	at := time.Now().Add(d)
	w.limit.Store(&at)
	_ = w.conn.SetWriteDeadline(at)
}

// errNotWritten is a write that did not end in time.
var errNotWritten = errors.New("the broker takes nothing")

// write sends a packet. One that is not taken whole was not sent: the broker reads
// whole packets, and the connection is of no use after it.
func (w *wire) write(b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return w.broken
	}
	deadline := time.Now().Add(w.patience)
	if limit := w.limit.Load(); limit != nil && limit.Before(deadline) {
		deadline = *limit
	}
	if err := w.conn.SetWriteDeadline(deadline); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if _, err := w.conn.Write(b); err != nil {
		w.broken = fmt.Errorf("send: %w", err)
		if !time.Now().Before(deadline) { // the error's type depends on what carries us
			w.broken = fmt.Errorf("%w: a write did not end within %s", errNotWritten, w.patience)
		}
		return w.broken
	}
	w.stamp()
	return nil
}

func (w *wire) stamp() {
	now := time.Now()
	w.sent.Store(&now)
}

// next reads a packet. A PUBLISH holds room of its size, which whoever handles it
// gives back: see free.
func (w *wire) next() (frame, error) {
	first, err := w.in.ReadByte()
	if err != nil {
		return frame{}, err
	}
	f := frame{kind: kind(first >> 4), flags: first & 15}
	if f.size, err = w.length(); err != nil {
		return frame{}, err
	}
	if want := flagsOf(f.kind); f.kind != publish && f.flags != want {
		return frame{}, violation("a packet of type %d with the flags %d", f.kind, f.flags)
	}
	if f.kind != publish {
		if f.size > controlMax {
			return frame{}, violation("a packet of type %d with %d bytes", f.kind, f.size)
		}
		f.body, err = w.body(f.size)
		return f, err
	}
	if err := w.reserve(f.size); err != nil {
		return frame{}, err
	}
	keep := f.size
	if keep > frameMax {
		keep = headMax
	}
	if f.body, err = w.body(keep); err == nil && keep < f.size {
		_, err = io.CopyN(io.Discard, w.in, int64(f.size-keep))
	}
	if err != nil {
		w.free(f)
	}
	return f, unexpected(err)
}

// flagsOf are the flags that a packet must have.
func flagsOf(k kind) byte {
	if k == pubrel {
		return 2
	}
	return 0
}

// length reads how long the rest of a packet is: at most four bytes of seven bits.
func (w *wire) length() (int, error) {
	n := 0
	for shift := 0; shift < 28; shift += 7 {
		b, err := w.in.ReadByte()
		if err != nil {
			return 0, unexpected(err)
		}
		if n |= int(b&127) << shift; b < 128 {
			return n, nil
		}
	}
	return 0, violation("a packet without a length")
}

func (w *wire) body(size int) ([]byte, error) {
	if size <= chunk {
		b := make([]byte, size)
		_, err := io.ReadFull(w.in, b)
		return b, unexpected(err)
	}
	var b bytes.Buffer
	_, err := io.CopyN(&b, w.in, int64(size))
	return b.Bytes(), unexpected(err)
}

// unexpected is the end of the stream within a packet.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// reserve waits for room for a message. One message always fits.
func (w *wire) reserve(size int) error {
	w.pause(true)
	defer w.pause(false)
	if !w.room.Take(size, w.open.Done()) {
		return net.ErrClosed
	}
	return nil
}

// free gives back the room of a PUBLISH.
func (w *wire) free(f frame) { w.room.Give(f.size) }

// pause notes that nobody listens, so that silence means nothing.
func (w *wire) pause(on bool) {
	if !on && w.listens != nil {
		w.listens()
	}
	w.waiting.Store(on)
}
