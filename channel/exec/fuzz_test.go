package exec

import "testing"

func FuzzHear(f *testing.F) {
	for _, s := range []string{
		`{"event":{"id":"1","text":"x","cursor":{"a":1},"raw":[1]}}`, `{"event":{"id":7,"time":"x"}}`, `{"event":{"id":"1","raw":1,"payload":"AA=="}}`,
		`{"event":{"time":"0000-01-01T00:00:00Z","action":{"id":"a","expires":"9999-12-31T23:59:59-23:59"}}}`, `{"cursor":null}`,
		`{"event":{"id":"1","interaction":true,"follow_up":{"address":"https://x.example/planted"},"raw":{"u":"https://x.example/planted"}}}`, `{}`, `[]`, `{"event":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		kind, body, err := parse(data)
		if err != nil || kind != "event" {
			return
		}
		r, _ := decode(body)
		e, cursor, id := r.event, r.cursor, r.id
		if e.Type == "" || e.Installation != "" || len(e.ID) > maxID || len(e.Raw) > 0 && len(e.Payload) > 0 {
			t.Fatalf("%q: got %+v, want an event of the program's own installation", data, e)
		}
		for name, b := range map[string][]byte{"the stored cursor": storedCursor(cursor), "the acknowledgement": id} {
			if len(b) > 0 {
				_ = line(name, ack{b}) // it panics on what is no JSON
			}
		}
		_ = line("event", e)
	})
}
