package websocket

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/coder/websocket"
)

// conn is the connection: the library's, and the wire below it.
type conn struct {
	*websocket.Conn
	wire  *wire
	frame func() // a ping or a pong came; set before the first read
}

// wire lies between the library and the connection, for four things that the
// library does not offer: every byte is a sign of life, half a large message
// included; hang closes at once even while a polite close waits for its answer;
// an end of the stream within a message is an error, which the library takes
// for the message's end where nothing of a frame's rest has come; and of a write
// that failed it tells whether the whole of it may have gone.
type wire struct {
	io.ReadWriteCloser
	alive func() // set before the first read
	sent  atomic.Int64
	short atomic.Bool // a write has left something behind
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.ReadWriteCloser.Read(b)
	if n > 0 && w.alive != nil {
		w.alive()
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (w *wire) Write(b []byte) (int, error) {
	n, err := w.ReadWriteCloser.Write(b)
	w.sent.Add(int64(n))
	if n < len(b) {
		w.short.Store(true)
	}
	return n, err
}

// wrote counts the bytes that have gone.
func (w *wire) wrote() int64 { return w.sent.Load() }

// lacks tells that a frame whose write failed surely did not go as a whole: nothing
// has gone since before, or something was left behind, after which nothing goes.
// Frames are written one at a time.
func (w *wire) lacks(before int64) bool { return w.short.Load() || w.sent.Load() == before }

// hang closes the connection at once, whatever else is going on.
func (w *wire) hang() { _ = w.Close() }

// tap is a transport that puts a wire below what was upgraded.
type tap struct {
	http.RoundTripper
	wire *wire
}

func (t *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if body, ok := resp.Body.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		t.wire.ReadWriteCloser = body
		resp.Body = t.wire
	}
	return resp, nil
}
