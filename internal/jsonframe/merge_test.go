package jsonframe

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMerge(t *testing.T) {
	for _, c := range []struct{ name, doc, patch, want string }{
		{"a key is added, another replaced", `{"a":1,"b":2}`, `{"b":"x","c":[1,{"d":null}]}`, `{"a":1,"b":"x","c":[1,{"d":null}]}`},
		{"null takes a key out", `{"a":1,"b":2}`, `{"a":null,"z":null}`, `{"b":2}`},
		{"objects are merged", `{"a":{"b":1,"c":{"d":2}}}`, `{"a":{"c":{"d":null,"e":3}}}`, `{"a":{"b":1,"c":{"e":3}}}`},
		{"an object takes the place of what is none", `{"a":[1],"b":null}`, `{"a":{"x":null,"y":1},"b":{"z":2}}`, `{"a":{"y":1},"b":{"z":2}}`},
		{"numbers and signs stay as they are", `{"a":1.50,"b":"<&>"}`, `{"c":12345678901234567890}`, `{"a":1.50,"b":"<&>","c":12345678901234567890}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := Merge([]byte(c.doc), []byte(c.patch)); err != nil || string(got) != c.want {
				t.Errorf("got %s, %v, want %s", got, err, c.want)
			}
		})
	}
	for _, c := range []struct{ doc, patch, want string }{
		{`[]`, `{}`, "no JSON object to merge it into"},
		{`null`, `{}`, "no JSON object to merge it into"},
		{`PING`, `{}`, "no JSON object to merge it into"},
		{`{}`, `[]`, "it is no JSON object"},
		{`{}`, `null`, "it is no JSON object"},
		{`{}`, `{`, "it is no JSON object"},
	} {
		if _, err := Merge([]byte(c.doc), []byte(c.patch)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s and %s: got %v, want %q", c.doc, c.patch, err, c.want)
		}
	}
}

func FuzzMerge(f *testing.F) {
	f.Add(`{"a":{"b":1}}`, `{"a":{"b":null,"c":[]}}`)
	f.Add(`{"a":1}`, `{"a":{"a":{"a":null}}}`)
	f.Fuzz(func(t *testing.T, doc, patch string) {
		got, err := Merge([]byte(doc), []byte(patch))
		if err != nil {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%s and %s: got %s, want JSON", doc, patch, got)
		}
		again, err := Merge(got, []byte(patch))
		if err != nil || string(again) != string(got) {
			t.Fatalf("%s and %s: got %s, then %s, want the same", doc, patch, got, again)
		}
	})
}
