package exec_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/exec"
)

// A program's end and its last words come on different ways, and its end may be
// known first.
func TestWhatAProgramSaidBeforeItsEndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said, says := io.Pipe()
		ended := make(chan exec.Ended, 1)
		spec := exec.SpecOver(func(*channel.Link, []string, []string) (*exec.Launched, error) {
			return &exec.Launched{
				Stdin: unheard{io.Discard}, Stdout: said, Stderr: io.NopCloser(strings.NewReader("")), Terminate: func() {}, Kill: func() {}, Ended: ended,
			}, nil
		})
		c, err := spec.Decode(json.RawMessage(`{"command":["fake"]}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		ch, err := c.Build(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b := channeltest.NewBench(nil, nil)
		b.Start(t.Context(), ch)
		say := func(line string) {
			if _, err := io.WriteString(says, line+"\n"); err != nil {
				t.Errorf("say %s: %v", line, err)
			}
		}
		say(`{"hello":{"protocol":1,"can":["send"]}}`)
		say(`{"ready":{}}`)
		synctest.Wait()
		var receipt channel.Receipt
		sent := make(chan error, 1)
		go func() {
			var err error
			receipt, err = ch.(channel.Sender).Send(t.Context(), channel.Message{ID: "1", Op: "send"})
			sent <- err
		}()
		synctest.Wait() // it has been told
		ended <- exec.EndedWith(0, "exit status 0")
		synctest.Wait()
		say(`{"send_result":{"id":"1","message_id":"m1"}}`)
		if err := says.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil || receipt.MessageID != "m1" {
			t.Errorf("got %+v, %v, want what the program has said of it", receipt, err)
		}
		if got := channel.Classify(b.Wait()); got.Code != "exit_0" {
			t.Errorf("got %q (%v), want its end", got.Code, got.Err)
		}
	})
}

// unheard is the standard input of a program that reads it all.
type unheard struct{ io.Writer }

func (unheard) Close() error { return nil }
