package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// listener is a program's standard input: an unbuffered pipe that it reads when the
// test says so.
func listener() (*speech, *io.PipeReader) {
	r, w := io.Pipe()
	return newSpeech(w), r
}

func ids(n int) []json.RawMessage {
	all := make([]json.RawMessage, n)
	for i := range all {
		all[i] = json.RawMessage(fmt.Sprintf(`"%d"`, i))
	}
	return all
}

func TestSpeech(t *testing.T) {
	t.Run("acknowledgements come one by one, before everything that came later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, r := listener()
			for _, id := range ids(3) {
				s.ack(id)
			}
			s.ping()
			s.ping() // one is enough
			s.order(line("stop", stop{"draining"}))
			go s.run()
			got := make([]byte, 1024)
			n, err := r.Read(got)
			want := `{"ack":{"id":"0"}}` + "\n" + `{"ack":{"id":"1"}}` + "\n" + `{"ack":{"id":"2"}}` + "\n" + `{"ping":{}}` + "\n" + `{"stop":{"reason":"draining"}}` + "\n"
			if err != nil || string(got[:n]) != want {
				t.Errorf("got %q, %v, want %q", got[:n], err, want)
			}
			s.close()
		})
	})

	t.Run("those that a program does not read are joined, so that memory is bounded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, r := listener()
			go s.run()
			s.ack(ids(1)[0])
			synctest.Wait() // the first is being written, to nobody
			all := ids(100_000)
			for _, id := range all {
				s.ack(id)
			}
			if len(s.acks) > maxAcks || s.ackBytes > maxAckBytes {
				t.Errorf("got %d waiting with %d bytes, want at most %d and %d", len(s.acks), s.ackBytes, maxAcks, maxAckBytes)
			}
			large := json.RawMessage(`"` + strings.Repeat("x", maxAckBytes) + `"`)
			s.ack(large)
			s.ack(large)
			if len(s.acks) != 1 {
				t.Errorf("got %d large ones waiting, want the last", len(s.acks))
			}
			s.ack(all[len(all)-1])
			var heard strings.Builder
			var reading sync.WaitGroup
			reading.Go(func() { _, _ = io.Copy(&heard, r) })
			synctest.Wait()
			s.close()
			reading.Wait()
			if !strings.HasSuffix(heard.String(), `{"ack":{"id":"99999"}}`+"\n") {
				t.Errorf("got %.100q, want the last one at the end", heard.String())
			}
		})
	})

	t.Run("a send that was not begun is taken back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, r := listener()
			go s.run()
			s.ping()
			synctest.Wait() // it is being written, to nobody
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if begun, err := s.say(ctx, []byte("x\n")); begun || !errors.Is(err, errMute) {
				t.Errorf("got begun %t, %v, want it not begun", begun, err)
			}
			var said sync.WaitGroup
			said.Go(func() {
				if begun, err := s.say(t.Context(), []byte("y\n")); !begun || err != nil {
					t.Errorf("got begun %t, %v, want it said", begun, err)
				}
			})
			synctest.Wait()
			got := make([]byte, 64)
			n, _ := r.Read(got)
			m, _ := r.Read(got[n:])
			if string(got[:n+m]) != `{"ping":{}}`+"\n"+"y\n" {
				t.Errorf("got %q, want what was not taken back", got[:n+m])
			}
			said.Wait()
			s.close()
		})
	})

	t.Run("at its end nothing waits any more", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, _ := listener()
			ended := make(chan bool)
			go func() { s.run(); close(ended) }()
			s.ping()
			synctest.Wait() // it is being written, to nobody
			var said sync.WaitGroup
			said.Go(func() {
				if begun, err := s.say(t.Context(), []byte("x\n")); begun || !errors.Is(err, errNotHeld) {
					t.Errorf("got begun %t, %v, want it not said", begun, err)
				}
			})
			synctest.Wait()
			s.close()
			<-ended
			said.Wait()
			if begun, err := s.say(t.Context(), []byte("x\n")); begun || err == nil {
				t.Errorf("got begun %t, %v after the end, want an error", begun, err)
			}
			s.ack(ids(1)[0])
			s.ping()
			if len(s.acks)+len(s.orders) > 0 {
				t.Error("got something waiting after the end, want nothing kept")
			}
		})
	})
}
