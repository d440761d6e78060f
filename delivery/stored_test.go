package delivery

import (
	"encoding/json"
	"reflect"
	"testing"

	"leasehold/channel"
)

func TestUnsealed(t *testing.T) {
	trap := json.RawMessage(`{"a":1,"raw":{"b":[2,"raw"]},"c":"}"}`)
	for name, e := range map[string]channel.Event{
		"with what the platform sent":   {ID: "1", Type: "message", Text: "hello", Raw: trap},
		"without":                       {ID: "1", Type: "message", Text: "hello"},
		"of bytes":                      {ID: "1", Type: "device", Payload: []byte(`,"raw":1`), ContentType: "text/plain"},
		"whose text looks like the key": {ID: `,"raw":`, Type: "message", Text: `x","raw":{}}`, Raw: trap},
		"whose text looks like the key, and nothing after": {ID: "1", Type: "message", Text: `","raw":1}`},
		"with values that have a key of that name":         {ID: "1", Type: "action", Action: &channel.Action{ID: "a", Values: trap}, Raw: trap},
		"with such values alone":                           {ID: "1", Type: "action", Action: &channel.Action{ID: "a", Values: trap}},
	} {
		t.Run("an event "+name+" is read as it was written", func(t *testing.T) {
			body, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			got, err := unsealed(body)
			if err != nil || !reflect.DeepEqual(got, e) {
				t.Errorf("got %+v, %v, want %+v", got, err, e)
			}
		})
	}
	t.Run("one that was written with raw in its middle is read, too", func(t *testing.T) {
		got, err := unsealed([]byte(`{"id":"1","type":"message","raw":{"x":1},"content_type":"text/plain"}`))
		if err != nil || string(got.Raw) != `{"x":1}` || got.ContentType != "text/plain" {
			t.Errorf("got %+v, %v, want raw and the content type", got, err)
		}
	})
	t.Run("what is no event is refused", func(t *testing.T) {
		for _, body := range []string{``, `{`, `x,"raw":1}`, `{"id":"1","raw":`} {
			if got, err := unsealed([]byte(body)); err == nil {
				t.Errorf("%q: got %+v, want an error", body, got)
			}
		}
	})
}
