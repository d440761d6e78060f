package websocket

import (
	"encoding/json"
	"testing"

	"leasehold/internal/jsonframe"
)

func FuzzEvent(f *testing.F) {
	p, err := newPlan(Config{
		URL: "ws://h", Ack: `{"ack":{{id}},"c":{{/c}}}`, AuthCodes: nil, Binary: binaryAccept, MaxSize: 1 << 20, WSPing: true,
		PingEvery: defaults().PingEvery, Answer: defaults().Answer, ReadyWhen: Match{Pointer: "/type", Equals: "hello"}, IgnoreWhen: []Match{{Pointer: "/x"}},
		Pointers: Pointers{ID: "/id", Cursor: "/c", Type: "/type", Time: "/time", Conversation: "/a/b", Thread: "/a/0", Sender: "/s", Text: "/text"},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"id":"1","c":2,"type":"t","time":1700000000.5,"a":{"b":"x"},"s":1e3,"text":"\u0000\ud800"}`), false, 0)
	f.Add([]byte("\xff\x00"), true, 0)
	f.Add([]byte(`{"id":"1","c":2,"text":"cut`), false, 100)
	f.Add([]byte(`{"id":1,"time":"0000-01-01T00:00:00+23:59"}`), false, 0)
	f.Fuzz(func(t *testing.T, data []byte, binary bool, more int) {
		fr := newFrame(data, binary, len(data)+max(0, more))
		_ = p.readyWhen.holds(fr.data, fr.json)
		_ = anyHolds(p.ignoreWhen, fr.data, fr.json)
		e, v := p.event(fr, func() string { return "made" })
		if e.ID == "" || len(e.ID) > jsonframe.MaxID || e.Type == "" || len(e.Type) > jsonframe.MaxType {
			t.Fatalf("got id %q and type %q, want both, bounded", e.ID, e.Type)
		}
		if e.Raw != nil && e.Payload != nil {
			t.Fatal("got both raw and payload, want one at most")
		}
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%q: got an event that JSON cannot hold: %v", data, err)
		}
		if ack, ok := p.ack.Render(v); ok && fr.json && !json.Valid(ack) {
			t.Fatalf("%q: got ack %s, want JSON", data, ack)
		}
		p.resumes = true
		if c := p.cursor(v.Cursor); c != nil && fr.json && string(p.resumeFrom(c)) == "" {
			t.Fatalf("%q: got cursor %s that does not come back", data, c)
		}
		_ = b
	})
}
