package admin

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// InProcess is the way in to handlers of the same process: no socket, the same
// requests and answers. An answer's body must be closed, which ends its handler.
func InProcess(h http.Handler) http.RoundTripper { return inProcess{h} }

type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	// A server cancels the context of a request whose client goes away; so does the
	// body's Close here.
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.RequestURI = r.URL.RequestURI()
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), localKey{}, true))
	in = in.WithContext(ctx)

	reader, writer := io.Pipe()
	a := &pipeAnswer{header: http.Header{}, body: writer, began: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.handler.ServeHTTP(a, in)
		a.WriteHeader(http.StatusOK)
		_ = writer.Close() // never fails
	}()
	<-a.began
	return &http.Response{
		Status: strconv.Itoa(a.status) + " " + http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.sent, ContentLength: -1, Request: r,
		Body: &pipeBody{PipeReader: reader, end: func() { cancel(); <-done }},
	}, nil
}

// pipeAnswer is a ResponseWriter whose bytes are read as they are written.
type pipeAnswer struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	began  chan struct{} // closed with the status: sent and status are set
	sent   http.Header
	status int
}

func (a *pipeAnswer) Header() http.Header { return a.header }

func (a *pipeAnswer) WriteHeader(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.began)
	})
}

func (a *pipeAnswer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// Flush has nothing to do: a pipe holds nothing back.
func (a *pipeAnswer) Flush() { a.WriteHeader(http.StatusOK) }

// pipeBody ends its handler when it is closed.
type pipeBody struct {
	*io.PipeReader
	end func()
}

func (b *pipeBody) Close() error {
	_ = b.PipeReader.Close() // never fails
	b.end()
	return nil
}
