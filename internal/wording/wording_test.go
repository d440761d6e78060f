package wording_test

import (
	"strings"
	"testing"

	"leasehold/internal/wording"
)

const envelope = `{"type":"message","timestamp":"2026-11-30T09:12:44.381Z","data":{"id":"evt_1",
"installation":{"id":"acme","type":"slack","labels":{"tenant.name":"Acme"}},"node":{"name":"gw"},
"conversation":{"id":"C1","title":"deploys {now}"},"sender":{"name":"Ada \"A\"","bot":false},"text":"line 1\nline 2","thread":null,
"device":{"qos":1,"properties":{"a/b":"x"}},"system":{"to":"backoff","n":3},"raw":{"event":{"k":[7,"<&>"]}}}}`

func TestRender(t *testing.T) {
	for text, want := range map[string]string{
		"{installation.id}: {text}":                          "acme: line 1\nline 2",
		"{ sender.name } in {conversation.title}":            `Ada "A" in deploys {now}`,
		"{type} {id} {timestamp} {node.name}":                "message evt_1 2026-11-30T09:12:44.381Z gw",
		"{installation.labels.tenant.name}":                  "Acme",
		"{device.properties.a/b} {device.qos} {sender.bot}":  "x 1 false",
		"{raw/event/k/0} {raw/event/k/1} {raw/event/nobody}": "7 <&> ",
		"{system.to} {system.n}":                             "backoff 3",
		"[{thread}{command.name}{payload}]":                  "[]",
		"{{text}} }}{{":                                      "{text} }{",
		"plain":                                              "plain",
		"":                                                   "",
	} {
		parsed, err := wording.Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := parsed.Render([]byte(envelope)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for text, words := range map[string]string{
		"{txt}":                  "{txt} is no field of an event",
		"{}":                     "{} is no field of an event",
		"{system.}":              "{system.} is no field of an event",
		"{installation.labels.}": "names nothing behind installation.labels",
		"{raw/~2}":               "has no JSON pointer behind raw",
		"{text":                  "has a { without its }; write {{ for a brace",
		"text}":                  "has a } without its {; write }} for a brace",
	} {
		if _, err := wording.Parse(text); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: got %v, want %q", text, err, words)
		}
	}
	t.Run("every name that is suggested can be read", func(t *testing.T) {
		for _, name := range wording.Names() {
			if strings.HasSuffix(name, ".") || strings.HasSuffix(name, "/") {
				name += "x"
			}
			if _, err := wording.Parse("{" + name + "}"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("{installation.id}: {text} {{x}}", envelope)
	f.Add("{raw/a~1b}", `{"data":{"raw":{"a/b":"x"}}}`)
	f.Fuzz(func(t *testing.T, text, envelope string) {
		parsed, err := wording.Parse(text)
		if err != nil {
			return
		}
		got := parsed.Render([]byte(envelope))
		if !strings.Contains(text, "{") && !strings.Contains(text, "}") && got != text {
			t.Errorf("%q: got %q, want it as it is", text, got)
		}
	})
}
