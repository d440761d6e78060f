package eventmatch_test

import (
	"errors"
	"strings"
	"testing"

	"leasehold/internal/eventmatch"
)

func TestParsePath(t *testing.T) {
	for s, want := range map[string]string{
		"conversation.id":                 "conversation.id ",
		"installation.labels.tenant":      "installation.labels tenant",
		"installation.labels.a.b/c":       "installation.labels a.b/c",
		"device.properties.unit":          "device.properties unit",
		"raw/event/0/a~1b":                "raw event 0 a/b",
		"raw/":                            "raw ",
		"installation.labels.":            "names nothing behind installation.labels",
		"raw/a~2":                         "has no JSON pointer behind raw: write ~ as ~0 and / as ~1",
		"installation.labels":             eventmatch.ErrUnknown.Error(),
		"raw":                             eventmatch.ErrUnknown.Error(),
		"raw.event":                       eventmatch.ErrUnknown.Error(),
		"conversation":                    eventmatch.ErrUnknown.Error(),
		"Conversation.ID":                 eventmatch.ErrUnknown.Error(),
		"conversation.id.more":            eventmatch.ErrUnknown.Error(),
		"":                                eventmatch.ErrUnknown.Error(),
		strings.Repeat("installation", 9): eventmatch.ErrUnknown.Error(),
	} {
		p, err := eventmatch.ParsePath(s)
		got := p.Name + " " + p.Rest + strings.Join(p.Pointer, " ")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
	for _, name := range eventmatch.Names() {
		if strings.HasSuffix(name, ".") || strings.HasSuffix(name, "/") {
			name += "x"
		}
		if _, err := eventmatch.ParsePath(name); err != nil {
			t.Errorf("%s: got %v, want every name that is listed to be one", name, err)
		}
	}
}

func TestPattern(t *testing.T) {
	for _, c := range []struct{ path, pattern, value, want string }{
		{"text", "deploy", "deploy", "fits"},
		{"text", "deploy", "deploy api", "does not"},
		{"text", "deploy*", "deploy api", "fits"},
		{"text", "deploy*", "deploy", "fits"},
		{"text", "deploy*", "redeploy", "does not"},
		{"text", "*", "x", "fits"},
		{"text", "*", "", "does not"},
		{"thread", "", "", "fits"},
		{"thread", "", "t1", "does not"},
		{"text", "Deploy", "deploy", "does not"},
		{"text", "a*b", "", "may have one *, at its end"},
		{"text", "**", "", "may have one *, at its end"},
		{"addressed", "true", "true", "fits"},
		{"addressed", "true", "false", "does not"},
		{"addressed", "yes", "", "must be true or false"},
		{"addressed", "t*", "", "must be true or false"},
		{"reaction.removed", "*", "", "does not"},
		{"device.qos", "1", "1", "fits"},
		{"device.qos", "1.0", "", "must be a whole number"},
		{"raw/n", "1.0", "1.0", "fits"},
	} {
		p, err := eventmatch.ParsePath(c.path)
		if err != nil {
			t.Fatal(err)
		}
		pattern, err := p.Pattern(c.pattern)
		got := "does not"
		switch {
		case err != nil:
			got = err.Error()
		case pattern.Fits(c.value):
			got = "fits"
		}
		if got != c.want {
			t.Errorf("%s = %q and %q: got %s, want %s", c.path, c.pattern, c.value, got, c.want)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	for _, name := range eventmatch.Names() {
		f.Add(name + "x*")
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := eventmatch.ParsePath(s)
		if err != nil && p.Name != "" || err == nil && p.Name == "" {
			t.Fatalf("%q: got %+v and %v, want one of them", s, p, err)
		}
		if err != nil && !errors.Is(err, eventmatch.ErrUnknown) && strings.Contains(err.Error(), s) && len(s) > 20 {
			t.Fatalf("%q: got it back in %v, want what a stranger wrote left out", s, err)
		}
		if pattern, err := p.Pattern(s); err == nil && !strings.Contains(s, "*") && !pattern.Fits(s) {
			t.Fatalf("%q does not fit itself", s)
		}
	})
}
