package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"leasehold/delivery"
	"leasehold/internal/fault"
)

const (
	// retryStream is when a program whose stream was cut off comes back: a restart
	// takes longer, and asking costs nothing.
	retryStream = time.Second
	// resumeLinger is how long a stream that is acknowledged by coming back waits for
	// more behind what it sent: until then nothing else of those conversations goes.
	resumeLinger = 100 * time.Millisecond
	// retryResume is when it is to come back: that is its acknowledgement.
	retryResume = 100 * time.Millisecond
)

// pullStream tells a program of deliveries as they come, as server-sent events: the id
// of each is its lease, its data what a pull has of it. At most max of them are not
// acknowledged at a time. Last-Event-ID says what arrived on an earlier stream: what
// that sent behind it is offered again at once. With ack=resume it also acknowledges
// what arrived, for programs that cannot post; their stream ends a moment after it sent
// something, so that they come back.
func (a *API) pullStream(w http.ResponseWriter, r *http.Request) error {
	if a.o.Live == nil {
		return fault.Wrap(fault.Conflict, errNotRunning)
	}
	q := queryOf(r, "max", "ack")
	o := delivery.StreamOptions{
		Most: max(int(q.number("max", 1, delivery.PullMost)), 1), After: r.Header.Get("Last-Event-ID"), Acknowledge: q.oneOf("ack", "resume") != "",
	}
	if err := q.err(); err != nil {
		return err
	}
	name := r.PathValue("name")
	s, err := a.o.Live.Stream(name, o)
	if err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	defer s.Close()
	retry := retryStream
	if o.Acknowledge {
		retry = retryResume
	}
	out, ok := beginStream(w, retry)
	if !ok {
		return nil
	}
	ctx, end := streaming(r)
	defer end()
	most := 0 // until they are acknowledged by coming back
	if o.Acknowledge {
		most = o.Most
	}
	a.tellPulled(ctx, out, name, s, most)
	return nil
}

// tellPulled writes what s has until ctx or s ends, or the reader is gone; with most,
// until it has written as many or nothing more comes.
func (a *API) tellPulled(ctx context.Context, out eventStream, name string, s *delivery.Stream, most int) {
	for sent := 0; most == 0 || sent < most; {
		wait := streamAlive
		if most > 0 && sent > 0 {
			wait = resumeLinger
		}
		limited, cancel := context.WithTimeout(ctx, wait)
		l, err := s.Next(limited)
		cancel()
		switch {
		case err == nil:
			if ctx.Err() != nil || !a.tellOne(out, l) { // nobody reads it
				a.o.Live.Release(name, []delivery.Leased{l})
				return
			}
			sent++
		case ctx.Err() != nil, errors.Is(err, delivery.ErrStreamOver), wait == resumeLinger, !out.alive():
			return
		}
	}
}

// tellOne writes a delivery, as it is: it is what a webhook would get.
func (a *API) tellOne(out eventStream, l delivery.Leased) bool {
	data, err := a.encode(pulledOf(l)) // one line, ended by \n
	if err != nil {
		return false
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %s\ndata: %s\n", l.Lease, data)
	return out.send(b.Bytes())
}
