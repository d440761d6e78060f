package admin

import (
	"fmt"
	"net/http"
	"time"
)

const (
	// streamAlive is how often a silent stream says that it lives, so that proxies and
	// readers with a time-out keep it.
	streamAlive = 15 * time.Second
	// streamWrite bounds one write to a reader that does not read.
	streamWrite = 10 * time.Second
)

// eventStream is an answer of server-sent events.
type eventStream struct {
	w   http.ResponseWriter
	out *http.ResponseController
}

// beginStream answers with a stream. A reader that is cut off comes back after retry; 0
// leaves that to it. false: nobody reads it.
func beginStream(w http.ResponseWriter, retry time.Duration) (eventStream, bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	s := eventStream{w, http.NewResponseController(w)}
	hello := ": leasehold\n\n"
	if retry > 0 {
		hello = fmt.Sprintf(": leasehold\nretry: %d\n\n", retry.Milliseconds())
	}
	return s, s.send([]byte(hello))
}

// send writes b and flushes it. false: the reader is gone, or does not read.
func (s eventStream) send(b []byte) bool {
	_ = s.out.SetWriteDeadline(time.Now().Add(streamWrite)) // a writer without deadlines is in this process
	_, err := s.w.Write(b)
	return err == nil && s.out.Flush() == nil
}

// alive says that the stream lives. false: nobody hears it.
func (s eventStream) alive() bool { return s.send([]byte(":\n\n")) }
