package mqtt

import (
	"errors"
	"net"
	"testing"
	"time"
)

// fickle is a connection that takes half of a first write.
type fickle struct {
	net.Conn
	wrote int
}

func (f *fickle) Write(b []byte) (int, error) {
	f.wrote++
	if f.wrote == 1 {
		return len(b) / 2, errors.New("a moment, please")
	}
	return len(b), nil
}

func (*fickle) SetWriteDeadline(time.Time) error { return nil }

func TestNothingFollowsHalfAPacket(t *testing.T) {
	c := &fickle{}
	w := newWire(c, time.Second)
	for range 2 {
		if err := w.write(ping()); err == nil {
			t.Error("got no error, want one for ever")
		}
	}
	if c.wrote != 1 {
		t.Errorf("got %d writes, want the first alone", c.wrote)
	}
}

func TestAPingProvesTheAcknowledgementsBeforeIt(t *testing.T) {
	s := &session{wire: newWire(&fickle{wrote: 1}, time.Second)}
	for range 3 {
		s.proof.acked(s)
	}
	if err := s.proof.ask(s); err != nil {
		t.Fatal(err)
	}
	s.proof.acked(s)
	if err := s.proof.ask(s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []uint64{3, 4} {
		if got, ok := s.proof.answered(); !ok || got != want {
			t.Errorf("got %d, %t, want %d proven", got, ok, want)
		}
	}
	if _, ok := s.proof.answered(); ok {
		t.Error("got proof from an answer to nothing")
	}
	for range proofEvery {
		s.proof.acked(s)
	}
	if got, ok := s.proof.answered(); !ok || got != 4+proofEvery {
		t.Errorf("got %d, %t, want a ping after %d acknowledgements", got, ok, proofEvery)
	}
}
