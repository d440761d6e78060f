package delivery

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

// answers is a target that answers every event with a body.
func answers(body string) *fakeSink {
	return &fakeSink{answer: func(context.Context, Delivery) Result {
		return Result{Outcome: Taken, Answer: ReadAnswer("", []byte(body))}
	}}
}

// speaking are the options of a box whose fake channel can send.
func speaking(o Options) Options {
	o.Can = func(typ string) (channel.Capabilities, bool) {
		return channel.Capabilities{Send: true, Threads: true}, typ == "fake"
	}
	return o
}

func TestReplies(t *testing.T) {
	said := func(r Reply) string {
		return fmt.Sprintf("%s %s %s/%s %s %q %s", r.Key, r.Op, r.Conversation, r.Thread, r.MessageID, r.Text, r.Refused)
	}
	// deliver brings one event of a conversation to a target.
	deliver := func(t *testing.T, o Options, target Target) (row fakeRow) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			target.Name = "app"
			b := start(t, newOutbox(), speaking(o), target)
			seq := b.box.add("a", channel.Event{MessageID: "M1", Thread: "T1", Conversation: channel.Ref{ID: "C1"}}, "app")
			b.hold("a")
			time.Sleep(time.Second)
			row = b.box.row(seq, "app")
			same(t, "state", row.state, Delivered)
		})
		return row
	}

	t.Run("what a program answers is stored with the mark, under keys of the delivery", func(t *testing.T) {
		row := deliver(t, Options{}, Target{Sink: answers(`{"messages":[{"text":"a"},{"text":"b","conversation":"C2"}]}`)})
		same(t, "replies", len(row.said), 2)
		same(t, "first", said(row.said[0]), `msg_1_app#1 send C1/T1 M1 "a" `)
		same(t, "second", said(row.said[1]), `msg_1_app#2 send C2/  "b" `)
		same(t, "who speaks", row.said[0].Installation, "a")
		same(t, "ids", row.said[0].ID != row.said[1].ID && strings.HasPrefix(row.said[0].ID, "out_"), true)
	})

	t.Run("an event without an answer is delivered without one", func(t *testing.T) {
		same(t, "replies", len(deliver(t, Options{}, Target{Sink: answers(`ok`)}).said), 0)
	})

	t.Run("an answer that is none does not fail the delivery, and is told with what to do", func(t *testing.T) {
		log := &logbook{}
		row := deliver(t, Options{Log: log.logger()}, Target{Sink: answers(`{"text":5}`)})
		same(t, "replies", len(row.said), 0)
		if !strings.HasPrefix(row.err, "its answer was not taken: ") {
			t.Errorf("got the note %q, want why the answer was not taken", row.err)
		}
		lines := log.find("answer not taken")
		same(t, "lines", len(lines), 1)
		same(t, "next step", lines[0]["next_step"], any(stepAnswer))
		same(t, "event", lines[0]["event"], any("evt_1"))
	})

	t.Run("what the installation cannot do is refused with the reason", func(t *testing.T) {
		log := &logbook{}
		row := deliver(t, Options{Log: log.logger()}, Target{Sink: answers(`{"messages":[{"op":"react","text":"eyes"},{"text":"","op":"send"},{"text":"a"}]}`)})
		same(t, "replies", len(row.said), 3)
		same(t, "no reactions", row.said[0].Refused, "the installation is of type fake, which cannot react")
		same(t, "nothing to say", row.said[1].Refused, "text and native are empty; there is nothing to send")
		same(t, "a third", row.said[2].Refused, "")
		same(t, "lines", len(log.find("message refused")), 2)
	})

	t.Run("a target that is not to speak is not heard", func(t *testing.T) {
		row := deliver(t, Options{}, Target{Sink: answers(`{"text":"a"}`), NoReplies: true})
		same(t, "replies", len(row.said), 0)
		same(t, "note", row.err, "")
	})

	t.Run("only who may answer is told where", func(t *testing.T) {
		told := func(target Target) bool {
			where := false
			target.Sink = &fakeSink{answer: func(_ context.Context, d Delivery) Result {
				where = strings.Contains(string(d.Envelope), `"reply":"/v1/events/evt_1/reply"`)
				return Result{Outcome: Taken}
			}}
			deliver(t, Options{}, target)
			return where
		}
		same(t, "a target", told(Target{}), true)
		same(t, "a target that is not to speak", told(Target{NoReplies: true}), false)
	})

	t.Run("batches have no replies, which is told once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			log := &logbook{}
			b := start(t, newOutbox(), speaking(Options{Log: log.logger()}), Target{Name: "app", Sink: answers(`{"text":"a"}`), Batch: 3, Concurrency: 1})
			backlog(b, 7, 7) // the last goes alone
			time.Sleep(time.Second)
			same(t, "delivered", b.box.count("app", Delivered), 7)
			for seq := range int64(7) {
				same(t, "replies", len(b.box.row(seq+1, "app").said), 0)
			}
			same(t, "lines", len(log.find("answer not taken")), 1)
		})
	})

	t.Run("who sends is told once the answer is stored, also when the store's answer was lost", func(t *testing.T) {
		for _, mode := range []faultMode{works, fails, persisted} {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var told []string
				box := newOutbox()
				box.setFault(mode, "mark")
				b := start(t, box, speaking(Options{Replied: func(lease string) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, lease)
				}}), Target{Name: "app", Sink: answers(`{"text":"a"}`)})
				seq := box.say("a", "C", "app")
				b.hold("a")
				time.Sleep(time.Second)
				box.setFault(works)
				time.Sleep(time.Minute)
				same(t, "replies", len(box.row(seq, "app").said), 1)
				mu.Lock()
				defer mu.Unlock()
				if len(told) == 0 || told[0] != "a" {
					t.Errorf("mode %d: got %v told, want the lease", mode, told)
				}
			})
		}
	})

	t.Run("a webhook's response and a command's output are answers", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"text":"done"}`))
		}))
		defer srv.Close()
		r := attempt(t, sinkFor(t, Target{URL: srv.URL}))
		if r.Outcome != Taken || r.Answer == nil || len(r.Answer.Messages) != 1 || r.Answer.Messages[0].Text != "done" {
			t.Errorf("got %+v, want the answer", r)
		}
	})
}
