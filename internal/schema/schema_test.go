package schema_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"leasehold/internal/schema"
)

type secret struct{ v string } //nolint:unused // stands for a type with unexported content

type every int64

func (e *every) UnmarshalText([]byte) error { return nil }

type auth struct {
	User string `json:"user" doc:"Who we are."`
}

type sample struct {
	URL     string            `json:"url" doc:"Where to connect." channel:"required,connection"`
	Token   secret            `json:"token" channel:"connection"`
	Ping    every             `json:"ping" default:"15s"`
	Limit   int               `json:"limit" default:"16"`
	Ratio   float64           `json:"ratio"`
	On      bool              `json:"on" default:"true"`
	Tags    []string          `json:"tags" default:"[\"a\"]"`
	Headers map[string]secret `json:"headers"`
	Auth    *auth             `json:"auth"`
	Raw     json.RawMessage   `json:"raw"`
	Skipped string            `json:"-"`
	Untold  string
}

func known(t reflect.Type) (schema.Schema, bool) {
	if t == reflect.TypeFor[secret]() {
		return schema.Schema{Type: "object", Secret: true}, true
	}
	return schema.Schema{}, false
}

func TestOf(t *testing.T) {
	t.Run("a struct becomes an object whose keys stand in the order of the fields", func(t *testing.T) {
		got, err := json.Marshal(schema.Of(reflect.TypeFor[sample](), known))
		if err != nil {
			t.Fatal(err)
		}
		want := `{"type":"object","properties":{` +
			`"url":{"type":"string","description":"Where to connect.","x-connection":true},` +
			`"token":{"type":"object","x-secret":true,"x-connection":true},` +
			`"ping":{"type":"string","default":"15s"},` +
			`"limit":{"type":"integer","default":16},` +
			`"ratio":{"type":"number"},` +
			`"on":{"type":"boolean","default":true},` +
			`"tags":{"type":"array","default":["a"],"items":{"type":"string"}},` +
			`"headers":{"type":"object","additionalProperties":{"type":"object","x-secret":true}},` +
			`"auth":{"type":"object","properties":{"user":{"type":"string","description":"Who we are."}},"additionalProperties":false},` +
			`"raw":{}},` +
			`"required":["url"],"additionalProperties":false}`
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})

	t.Run("a schema that is read back keeps the order of its keys", func(t *testing.T) {
		written, err := json.Marshal(schema.Of(reflect.TypeFor[sample](), known))
		if err != nil {
			t.Fatal(err)
		}
		var read schema.Schema
		if err := json.Unmarshal(written, &read); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(read)
		if err != nil {
			t.Fatal(err)
		}
		if string(again) != string(written) {
			t.Errorf("got  %s\nwant %s", again, written)
		}
	})

	t.Run("properties that are no object are refused", func(t *testing.T) {
		var s schema.Schema
		if err := json.Unmarshal([]byte(`{"properties":["a"]}`), &s); err == nil {
			t.Error("got no error, want one")
		}
	})
}
