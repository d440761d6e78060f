package sse

import (
	"encoding/json"
	"testing"

	"leasehold/internal/jsonframe"
)

func FuzzEvent(f *testing.F) {
	c := defaults()
	c.URL = "http://h/p"
	byLine, err := newPlan(c)
	if err != nil {
		f.Fatal(err)
	}
	c.Pointers = Pointers{ID: "/id", Type: "/type", Time: "/time", Conversation: "/a/b", Thread: "/a/0", Sender: "/s", Text: "/text"}
	byPointer, err := newPlan(c)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("n", "1", []byte(`{"id":"1","type":"t","time":1700000000.5,"a":{"b":"x"},"s":1e3,"text":"\u0000\ud800"}`))
	f.Add("", "", []byte("\xff\x00"))
	f.Add("\x00", "\n", []byte(`{"id":1,"time":"0000-01-01T00:00:00+23:59"}`))
	f.Fuzz(func(t *testing.T, name, id string, data []byte) {
		for _, p := range []*plan{byLine, byPointer} {
			e := p.event(block{name: name, id: id, hasID: true, data: data, size: len(data), hasData: true}, func() string { return "made" })
			if e.ID == "" || len(e.ID) > jsonframe.MaxID || e.Type == "" || len(e.Type) > jsonframe.MaxType {
				t.Fatalf("got id %q and type %q, want both, bounded", e.ID, e.Type)
			}
			if e.Raw != nil && e.Payload != nil {
				t.Fatal("got both raw and payload, want one at most")
			}
			if _, err := json.Marshal(e); err != nil {
				t.Fatalf("%q: got an event that JSON cannot hold: %v", data, err)
			}
			if back := p.resumeFrom(p.cursor(id)); id != "" && jsonframe.Text(back) == "" {
				t.Fatalf("%q: got a position that does not come back", id)
			}
		}
	})
}
