package delivery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrStreamOver ends a stream: its target is gone, this node has nothing left to
// deliver, a lease of it ran out without a word from its program, or that resumed it
// elsewhere. What it sent stays leased. Whoever is there asks for another.
var ErrStreamOver = errors.New("the stream is over")

// StreamOptions say how a program is told of its deliveries.
type StreamOptions struct {
	// Most is how many it may have that are not acknowledged, up to PullMost.
	Most int
	// After is the lease that came last on an earlier stream, which this one takes the
	// place of; "" = there is none. What that one had behind it never arrived: it is
	// offered again at once, which is no attempt. A lease that nobody knows, because
	// its process has ended, says nothing.
	After string
	// Acknowledge takes After as word that everything up to it is done with.
	Acknowledge bool
}

// Stream tells one program of the deliveries of a target as they come. A delivery is
// its own as one that was pulled is: for the target's timeout, until Acknowledge,
// GiveBack or Release names its lease; the stream's end changes nothing about that.
type Stream struct {
	sink *pullSink
	p    *puller
}

// Stream begins a stream of a target of kind pull. The error is fault.NotFound or
// fault.Invalid. Whoever has it closes it.
func (d *Dispatcher) Stream(name string, o StreamOptions) (*Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.pulledNow(name)
	if err != nil {
		return nil, err
	}
	p := &puller{room: min(max(o.Most, 1), PullMost), more: make(chan struct{}, 1), stream: rand.Text()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resume(o.After, o.Acknowledge)
	s.streams[p.stream] = p
	s.ask(p)
	return &Stream{s, p}, nil
}

// Next waits for the next delivery. The error is ErrStreamOver, or that of ctx.
func (s *Stream) Next(ctx context.Context) (Leased, error) {
	for {
		if l, ok, over := s.take(); ok {
			return l, nil
		} else if over {
			return Leased{}, ErrStreamOver
		}
		select {
		case <-s.p.more:
		case <-ctx.Done():
			return Leased{}, fmt.Errorf("wait for a delivery: %w", ctx.Err())
		}
	}
}

func (s *Stream) take() (l Leased, ok, over bool) {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	if len(s.p.got) == 0 {
		return Leased{}, false, s.p.over
	}
	l, s.p.got[0] = s.p.got[0], Leased{} // its memory goes with it
	s.p.got = s.p.got[1:]
	return l, true, false
}

// Close ends the stream. What Next did not return is offered again at once; what it
// did stays leased.
func (s *Stream) Close() {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	s.sink.hangUp(s.p)
}

// hangUp ends a stream; nil is none. The caller holds mu.
func (s *pullSink) hangUp(p *puller) {
	if p == nil || p.over {
		return
	}
	p.over = true
	s.leave(p)
	delete(s.streams, p.stream)
	for _, l := range p.got {
		s.finish(l.Lease, unheard)
	}
	p.got = nil
	p.hear()
}

// resume lets go of what an earlier stream had behind its lease last, and acknowledges
// the rest if it is to. The caller holds mu.
func (s *pullSink) resume(last string, acknowledge bool) {
	stream, n, ok := streamOf(last)
	if !ok {
		return
	}
	s.hangUp(s.streams[stream])
	for token, l := range s.leases {
		switch {
		case l.by == nil || l.by.stream != stream:
		case l.n > n:
			s.finish(token, unheard)
		case acknowledge:
			s.finish(token, Result{Outcome: Taken})
		}
	}
}

// Close implements io.Closer: it ends the streams of a target that is not there any
// more.
func (s *pullSink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.streams {
		s.hangUp(p)
	}
	return nil
}

// endStreams ends all streams: this node has nothing to tell them any more, and another
// may have.
func (d *Dispatcher) endStreams() {
	d.pulls.Range(func(_, s any) bool {
		_ = s.(*pullSink).Close() // never fails
		return true
	})
}

// streamLease names the nth lease of a stream, so that its place is known when it is
// over itself.
func streamLease(stream string, n uint64) string {
	return leasePrefix + stream + "-" + strconv.FormatUint(n, 10)
}

func streamOf(lease string) (stream string, n uint64, ok bool) {
	stream, place, ok := strings.Cut(strings.TrimPrefix(lease, leasePrefix), "-")
	n, err := strconv.ParseUint(place, 10, 64)
	return stream, n, ok && err == nil
}
