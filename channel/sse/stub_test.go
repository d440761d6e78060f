package sse_test

import (
	"context"
	"io"
	"net/http"
)

// request is what a stub heard.
type request struct{ method, uri, host, kind, accept, body string }

// hears serves stub.test:80, where every request is told and answered with one event
// and the stream's end.
func (w *world) hears(told func(r request)) {
	w.T.Helper()
	ln, err := w.Net.Listen("stub.test:80")
	if err != nil {
		w.T.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		told(request{r.Method, r.RequestURI, r.Host, r.Header.Get("Content-Type"), r.Header.Get("Accept"), string(body)})
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(rw, "id: a&\"b\ndata: x\n\n")
	})}
	go func() { _ = srv.Serve(ln) }()
	w.T.Cleanup(func() { _ = srv.Shutdown(context.WithoutCancel(w.T.Context())) })
}
