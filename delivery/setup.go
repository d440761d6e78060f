package delivery

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"reflect"
)

// setup is what a target is called with, from one change of it to the next. It is
// fixed, but for Off and what else Dispatcher.mu guards, so that a call ends as it
// began.
type setup struct {
	Target
	sink  Sink
	files [sha256.Size]byte // of the files that it was made from

	calls   int  // under way
	mute    bool // it was said that batches have no replies
	retired bool // another took its place, or none
	kept    bool // with the same sink
}

// equip makes what a target is called with. It makes no connection.
func (d *Dispatcher) equip(config Target) (*setup, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	s := &setup{Target: config.withDefaults(), sink: config.Sink}
	switch {
	case s.sink != nil:
	case s.Kind == "pull":
		s.sink = d.pullSink(s.Name)
	case s.Kind == "log":
		s.sink = logSink{d.log}
	case s.Kind == "command":
		s.sink = newCommandSink(s.Target, d.opts.Programs, d.opts.Environ, d.log)
	default:
		sink, err := newHTTPSink(s.Target, d.opts.Dial, d.opts.Clock, d.opts.Agent)
		if err != nil {
			return nil, err
		}
		s.sink = sink
	}
	if err := s.read(); err != nil {
		return nil, err
	}
	return s, nil
}

// read notes what the files of the setup hold, so that one that has changed is seen.
func (s *setup) read() error {
	all := sha256.New()
	for _, f := range []struct{ key, file string }{{"ca_file", s.CAFile}, {"client_cert", s.ClientCert}} {
		if f.file == "" {
			continue
		}
		pem, err := os.ReadFile(f.file)
		if err != nil {
			return fmt.Errorf("target %q: %s: %w", s.Name, f.key, err)
		}
		of := sha256.Sum256(pem)
		_, _ = all.Write(of[:]) // a hash takes all
	}
	all.Sum(s.files[:0])
	return nil
}

// same reports whether both call the same in the same way.
func (s *setup) same(o *setup) bool {
	a, b := s.Target, o.Target
	a.Sink, b.Sink = nil, nil
	a.Off, b.Off = "", ""       // says whether it is called
	a.rules, b.rules = nil, nil // made from Match, in any order
	return sameSink(s.Sink, o.Sink) && s.files == o.files && reflect.DeepEqual(a, b)
}

// sameSink reports whether two sinks that an embedder made are one.
func sameSink(a, b Sink) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

// weight is what a call counts among all that run at the same time. What a program has
// pulled only waits for its word.
func (s *setup) weight() int {
	if _, pulled := s.sink.(*pullSink); pulled {
		return 0
	}
	return 1
}

// retire returns what to close now; with calls under way the last of them does.
func (s *setup) retire() []io.Closer {
	s.retired = true
	if c := s.done(); c != nil {
		return []io.Closer{c}
	}
	return nil
}

// done is what to close once nothing uses it any more; nil: nothing, or not yet.
func (s *setup) done() io.Closer {
	if c, ok := s.sink.(io.Closer); ok && s.retired && !s.kept && s.calls == 0 {
		return c
	}
	return nil
}

// ended takes a call out of the count. The last one of a retired setup closes it.
func (d *Dispatcher) ended(s *setup) {
	s.calls--
	if c := s.done(); c != nil {
		d.calls.Go(func() { _ = c.Close() }) // not under the lock
	}
}
