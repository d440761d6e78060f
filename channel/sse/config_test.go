package sse_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"leasehold/channel/channeltest"
	"leasehold/channel/sse"
)

func TestAWrongConfigNamesTheKeyAndTheFix(t *testing.T) {
	const url = `"url":"http://h/p"`
	for _, c := range []struct{ name, config, want string }{
		{"no url", `{}`, "url is missing"},
		{"a ws url", `{"url":"ws://h/p"}`, "url: want http://HOST/PATH or https://HOST/PATH"},
		{"no host", `{"url":"http:///p"}`, "url: want http://HOST/PATH"},
		{"a fragment", `{"url":"http://h/p#x"}`, "url: a stream's address has no fragment; write # as %23"},
		{"an unknown name in the url", `{"url":"http://h/{{tokn}}"}`, "url: {{tokn}} is not known here; there are: cursor"},
		{"a name that is taken", `{` + url + `,"secrets":{"cursor":{"env":"TOKEN"}}}`, "secrets.cursor: a secret's name"},
		{"a header of ours", `{` + url + `,"headers":{"last-event-id":"5"}}`, "headers.last-event-id: it is sent by itself"},
		{"compression", `{` + url + `,"headers":{"Accept-Encoding":"gzip"}}`, "headers.Accept-Encoding: a compressed stream comes late"},
		{"a length", `{` + url + `,"headers":{"Content-Length":"5"}}`, "headers.Content-Length: the request sets it"},
		{"a header's name", `{` + url + `,"headers":{"a b":"x"}}`, `headers: "a b" is not a header's name`},
		{"a header with a line end", `{` + url + `,"headers":{"A":"x\n"}}`, "headers.A: a header holds no control characters; look for a line end"},
		{"an unknown name in a header", `{` + url + `,"headers":{"A":"{{cursor}}"}}`, "headers.A: {{NAME}} in it must be one of secrets"},
		{"a method without a stream", `{` + url + `,"method":"HEAD"}`, `method: want GET or POST, or another whose answer may be a stream, not "HEAD"`},
		{"a method in lower case", `{` + url + `,"method":"post"}`, `not "post"`},
		{"a body of a GET", `{` + url + `,"body":"x"}`, `body: a GET has none; set method = "POST"`},
		{"an unknown name in the body", `{` + url + `,"method":"POST","body":"{{id}}"}`, "body: {{id}} is not known here"},
		{"an empty name", `{` + url + `,"events":["a",""]}`, "events[1]: want a name of 1 to 256 bytes; an event without one is called message"},
		{"a pointer that is none", `{` + url + `,"pointers":{"text":"text"}}`, `pointers.text: "text" is no JSON pointer: it begins with /`},
		{"an unknown pointer", `{` + url + `,"pointers":{"cursor":"/c"}}`, `unknown key "pointers.cursor"`},
		{"a size", `{` + url + `,"max_size":0}`, "max_size: want 1 to 16777216 bytes, not 0"},
		{"a size past the read limit", `{` + url + `,"max_size":16777217}`, "max_size: want 1 to 16777216"},
		{"too short a silence", `{` + url + `,"dead_after":"10ms"}`, "dead_after: want at least 1s, not 10ms"},
		{"no silence at all", `{` + url + `,"dead_after":"0s"}`, "dead_after: want at least 1s"},
		{"too short an answer", `{` + url + `,"answer_within":"0s"}`, "answer_within: want at least 1s"},
		{"a literal secret", `{` + url + `,"secrets":{"token":"x"}}`, "secrets.token: a literal secret is refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var config map[string]any
			if err := json.Unmarshal([]byte(c.config), &config); err != nil {
				t.Fatal(err)
			}
			_, err := build(config)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	t.Run("every fault is told at once", func(t *testing.T) {
		_, err := build(map[string]any{"url": "x", "method": "y", "pointers": map[string]any{"id": "z"}})
		if err == nil || strings.Count(err.Error(), "\n") != 2 {
			t.Errorf("got %v, want three faults", err)
		}
	})
	t.Run("no secret is told", func(t *testing.T) {
		for _, config := range []map[string]any{
			{"url": "{{token}}", "secrets": map[string]any{"token": map[string]any{"env": "TOKEN"}}},
			{"url": "http://h:{{token}}/", "secrets": map[string]any{"token": map[string]any{"env": "TOKEN"}}},
			{"url": "http://h", "headers": map[string]any{"A": token + "\n"}},
			{"url": "http://h", "headers": map[string]any{"A": "{{" + token + "}}"}},
		} {
			if _, err := build(config); err == nil || strings.Contains(err.Error(), token) {
				t.Errorf("got %v, want an error without the secret", err)
			}
		}
	})
}

func TestARightConfigIsTaken(t *testing.T) {
	for name, config := range map[string]map[string]any{
		"the least":                          {"url": "https://h"},
		"a secret in a host":                 {"url": "http://{{token}}.h/", "secrets": map[string]any{"token": map[string]any{"env": "TOKEN"}}},
		"a body that is a secret as a whole": {"url": "http://h", "method": "POST", "body": map[string]any{"env": "TOKEN"}},
		"the largest size":                   {"url": "http://h", "max_size": 16 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := build(config); err != nil {
				t.Errorf("got %v, want it taken", err)
			}
		})
	}
}

func TestAChannelPrintsNoSecret(t *testing.T) {
	ch, err := build(map[string]any{"url": "http://h/?t={{token}}", "secrets": map[string]any{"token": map[string]any{"env": "TOKEN"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		if got := fmt.Sprintf(verb, ch); strings.Contains(got, token) {
			t.Errorf("%s prints %s, want no secret", verb, got)
		}
	}
}

func TestIdentity(t *testing.T) {
	for _, c := range []struct{ config, want string }{
		{`{"url":"https://H.test/p?x=1"}`, ""},
		{`{"url":"https://H.test/p?x=1","account":"acme"}`, "h.test/acme"},
		{`{"url":"https://h.test/p","account":"other"}`, "h.test/other"},
	} {
		got, err := sse.Spec.Decode(json.RawMessage(c.config), channeltest.Resolve)
		if err != nil {
			t.Fatal(err)
		}
		if got.Identity() != c.want {
			t.Errorf("%s: got %q, want %q", c.config, got.Identity(), c.want)
		}
	}
}

func TestEveryKeyIsDocumentedAndRebuildsTheConnection(t *testing.T) {
	var walk func(t *testing.T, typ reflect.Type)
	walk = func(t *testing.T, typ reflect.Type) {
		for f := range typ.Fields() {
			if f.Tag.Get("doc") == "" || !strings.HasSuffix(f.Tag.Get("doc"), ".") {
				t.Errorf("%s.%s: got doc %q, want a sentence", typ, f.Name, f.Tag.Get("doc"))
			}
			if !strings.Contains(f.Tag.Get("channel"), "connection") {
				t.Errorf("%s.%s: want it in the fingerprint: a channel is built from all of it", typ, f.Name)
			}
			if f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == typ.PkgPath() {
				walk(t, f.Type)
			}
		}
	}
	walk(t, sse.Spec.Config)
}
