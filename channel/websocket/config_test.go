package websocket_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"leasehold/channel/channeltest"
	"leasehold/channel/websocket"
)

func TestAWrongConfigNamesTheKeyAndTheFix(t *testing.T) {
	const url = `"url":"ws://h/p"`
	for _, c := range []struct{ name, config, want string }{
		{"no url", `{}`, "url is missing"},
		{"an http url", `{"url":"http://h/p"}`, "url: want ws://HOST/PATH or wss://HOST/PATH"},
		{"no host", `{"url":"ws:///p"}`, "url: want ws://HOST/PATH"},
		{"no url at all", `{"url":"::"}`, "url: want ws://HOST/PATH"},
		{"a port that no address has", `{"url":"ws://h:99999/p"}`, "url: want a port between 1 and 65535"},
		{"a fragment", `{"url":"ws://h/p#x"}`, "url: a WebSocket address has no fragment"},
		{"an unknown name in the url", `{"url":"ws://h/{{tokn}}"}`, "url: {{tokn}} is not known here; there are: cursor"},
		{"a name that is taken", `{` + url + `,"secrets":{"id":{"env":"TOKEN"}}}`, "secrets.id: a secret's name"},
		{"a name with a blank", `{` + url + `,"secrets":{"a b":{"env":"TOKEN"}}}`, "secrets.a b: a secret's name"},
		{"a header of the handshake", `{` + url + `,"headers":{"sec-websocket-protocol":"x"}}`, "headers.sec-websocket-protocol: the handshake sets it; use subprotocol"},
		{"a header's name", `{` + url + `,"headers":{"a b":"x"}}`, `headers: "a b" is not a header's name`},
		{"a header with a line end", `{` + url + `,"headers":{"A":"x\n"}}`, "headers.A: a header holds no control characters; look for a line end"},
		{"an unknown name in a header", `{` + url + `,"headers":{"A":"{{x}}"}}`, "headers.A: {{NAME}} in it must be one of secrets"},
		{"an unknown name in a frame", `{` + url + `,"login":"{{x}}"}`, "login: {{x}} is not known here"},
		{"an unknown name in a list", `{` + url + `,"subscribe":["a","{{x}}"]}`, "subscribe[1]: {{x}} is not known here"},
		{"half a placeholder", `{` + url + `,"ping":"{{"}`, "ping: {{ without }}"},
		{"an ack without an id", `{` + url + `,"ack":"{{id}}"}`, "ack: {{id}} needs pointers.id"},
		{"a resume without a cursor", `{` + url + `,"resume":"{{cursor}}"}`, "pointers: {{cursor}} needs pointers.cursor or pointers.id"},
		{"a resume that names none", `{` + url + `,"resume":"x","pointers":{"id":"/id"}}`, "resume: without {{cursor}} it cannot say where to go on"},
		{"a pointer that is none", `{` + url + `,"pointers":{"text":"text"}}`, `pointers.text: "text" is no JSON pointer: it begins with /`},
		{"a condition's pointer", `{` + url + `,"ready_when":{"pointer":"type"}}`, "ready_when.pointer: "},
		{"an empty condition in a list", `{` + url + `,"ignore_when":[{}]}`, "ignore_when[0]: pointer is missing"},
		{"an unknown key of a condition", `{` + url + `,"ready_when":{"pointr":"/type"}}`, `unknown key "ready_when.pointr"`},
		{"a close code", `{` + url + `,"auth_codes":[99]}`, "auth_codes: a close code is 1000 to 4999, not 99"},
		{"a binary policy", `{` + url + `,"binary":"maybe"}`, `binary: want accept or refuse, not "maybe"`},
		{"a size", `{` + url + `,"max_size":0}`, "max_size: want 1 to 16777216 bytes, not 0"},
		{"a size past the read limit", `{` + url + `,"max_size":16777217}`, "max_size: want 1 to 16777216"},
		{"a ping storm", `{` + url + `,"ping_every":"10ms"}`, "ping_every: want at least 1s, not 10ms; ws_ping = false turns"},
		{"no pings at all", `{` + url + `,"ping_every":"0s"}`, "ping_every: want at least 1s"},
		{"a negative interval", `{` + url + `,"ping_every":"-20s"}`, "must not be negative"},
		{"too short a silence", `{` + url + `,"dead_after":"30s"}`, "dead_after: want at least twice ping_every (20s), not 30s"},
		{"nothing that proves life", `{` + url + `,"ws_ping":false}`, "dead_after: with ws_ping = false and no ping nothing proves that the connection lives"},
		{"an unknown name in send", `{` + url + `,"send":"{{cursor}}"}`, "send: {{cursor}} is not known here; there are: conversation, follow_up, id, message_id, text, thread"},
		{"a secret that is named as a part of a message", `{` + url + `,"send":"{{text}}","secrets":{"text":{"env":"TOKEN"}}}`, "secrets.text: in send it is a part of the message"},
		{"an answer to nothing", `{` + url + `,"answer":{"id":"/ref"}}`, "answer.id: there is nothing to answer without send"},
		{"an answer that nothing is repeated in", `{` + url + `,"send":"{{text}}","answer":{"id":"/ref"}}`, "answer.id: send must hold {{id}}"},
		{"an edit that names nothing", `{` + url + `,"edit":"{{id}} {{text}}"}`, "edit: must hold {{message_id}}, or it says nothing of what to edit"},
		{"an edit that no answer repeats", `{` + url + `,"edit":"{{message_id}}","answer":{"id":"/ref"}}`, "answer.id: edit must hold {{id}}"},
		{"a reaction for ever", `{` + url + `,"react":"{{message_id}} {{text}}"}`, "unreact: goes with react: set both or neither"},
		{"a message that nothing tells of", `{` + url + `,"send":"{{text}}","ws_ping":false,"dead_after":"1h"}`, "answer.id: with ws_ping = false nothing else tells whether a message has arrived"},
		{"an answer that nothing makes one", `{` + url + `,"send":"{{text}}","answer":{"refused_when":{"pointer":"/error"}}}`, "answer.id: is missing"},
		{"an answer's pointer", `{` + url + `,"send":"{{id}}","answer":{"id":"/ref","error":"error"}}`, `answer.error: "error" is no JSON pointer`},
		{"an answer's condition", `{` + url + `,"send":"{{id}}","answer":{"id":"/ref","retry_when":{"pointer":"x"}}}`, `answer.retry_when.pointer: "x" is no JSON pointer`},
		{"a wait after nothing", `{` + url + `,"send":"{{id}}","answer":{"id":"/ref","retry_after":"/after"}}`, "answer.retry_after: is of an answer for which answer.retry_when holds"},
		{"a markup that there is not", `{` + url + `,"markup":"bbcode"}`, `markup: want plain, markdown, mrkdwn, discord, telegram or matrix, not "bbcode"`},
		{"a limit that leaves no room", `{` + url + `,"text_limit":99}`, "text_limit: want at least 100, or 0 for no limit, not 99"},
		{"a unit that there is not", `{` + url + `,"text_unit":"words"}`, `text_unit: want bytes, utf16 or characters, not "words"`},
		{"a rate that is none", `{` + url + `,"rate":"fast"}`, `must be a rate such as "30/s"`},
		{"an answer at once", `{` + url + `,"answer":{"within":"1ms"}}`, "answer.within: want at least 1s, not 1ms"},
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
		_, err := build(map[string]any{"url": "x", "binary": "y", "pointers": map[string]any{"id": "z"}})
		if err == nil || strings.Count(err.Error(), "\n") != 2 {
			t.Errorf("got %v, want three faults", err)
		}
	})
	t.Run("no secret is told", func(t *testing.T) {
		for _, config := range []map[string]any{
			{"url": "{{token}}", "secrets": map[string]any{"token": map[string]any{"env": "TOKEN"}}},
			{"url": "ws://h:{{token}}/", "secrets": map[string]any{"token": map[string]any{"env": "TOKEN"}}},
			{"url": "ws://h", "headers": map[string]any{"A": token + "\n"}},
			{"url": "ws://h", "headers": map[string]any{"A": "{{" + token + "}}"}},
		} {
			if _, err := build(config); err == nil || strings.Contains(err.Error(), token) {
				t.Errorf("got %v, want an error without the secret", err)
			}
		}
	})
}

func TestARightConfigIsTaken(t *testing.T) {
	for name, config := range map[string]map[string]any{
		"the least":                                             {"url": "wss://h"},
		"a slow ping widens the bound":                          {"url": "ws://h", "ping_every": "10m"},
		"a silence that the server keeps":                       {"url": "ws://h", "ws_ping": false, "dead_after": "1h"},
		"the platform's own ping":                               {"url": "ws://h", "ws_ping": false, "ping": "ping"},
		"a secret in a host":                                    {"url": "ws://{{token}}.h/", "secrets": map[string]any{"token": map[string]any{"env": "TOKEN"}}},
		"a login that is a secret as a whole":                   {"url": "ws://h", "login": map[string]any{"env": "TOKEN"}},
		"a secret with a message's name, where nothing is sent": {"url": "ws://h", "login": "{{text}}", "secrets": map[string]any{"text": map[string]any{"env": "TOKEN"}}},
		"an answer in place of pings":                           {"url": "ws://h", "ws_ping": false, "dead_after": "1h", "send": "[{{id}}]", "answer": map[string]any{"id": "/0"}},
		"the largest size":                                      {"url": "ws://h", "max_size": 16 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := build(config); err != nil {
				t.Errorf("got %v, want it taken", err)
			}
		})
	}
}

func TestAChannelPrintsNoSecret(t *testing.T) {
	ch, err := build(map[string]any{"url": "ws://h/?t={{token}}", "secrets": map[string]any{"token": map[string]any{"env": "TOKEN"}}})
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
		{`{"url":"wss://H.test/p?x=1"}`, ""},
		{`{"url":"wss://H.test/p?x=1","account":"acme"}`, "h.test/acme"},
		{`{"url":"wss://h.test/other","account":"acme"}`, "h.test/acme"},
		{`{"url":"wss://h.test/p","account":"other"}`, "h.test/other"},
	} {
		got, err := websocket.Spec.Decode(json.RawMessage(c.config), channeltest.Resolve)
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
	walk(t, websocket.Spec.Config)
}
