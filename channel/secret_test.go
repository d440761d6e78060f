package channel_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"leasehold/channel"
)

const planted = "hunter2-planted"

// deep is what a channel type's own struct looks like: fmt calls no method of
// what lies in an unexported field.
type deep struct {
	secret channel.Secret
	text   channel.Text
	list   []channel.Secret
	table  map[string]channel.Text
	ptr    *channel.Secret
}

func newDeep() deep {
	s, x := channel.NewSecret(planted), channel.NewText(planted)
	return deep{secret: s, text: x, list: []channel.Secret{s}, table: map[string]channel.Text{"k": x}, ptr: &s}
}

func TestASecretIsNeverPrinted(t *testing.T) {
	values := map[string]any{
		"a secret":                       channel.NewSecret(planted),
		"a text":                         channel.NewText(planted),
		"a pointer to a secret":          new(channel.NewSecret(planted)),
		"a struct that hides both":       newDeep(),
		"a pointer to such a struct":     new(newDeep()),
		"a struct with exported secrets": struct{ S channel.Secret }{channel.NewSecret(planted)},
	}
	for name, v := range values {
		t.Run(name, func(t *testing.T) {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3f"} {
				if got := fmt.Sprintf(verb, v); strings.Contains(got, planted) || strings.Contains(got, fmt.Sprintf("%x", planted)) {
					t.Errorf("%s prints %s, want no secret", verb, got)
				}
			}
			if got, err := json.Marshal(v); err != nil || bytes.Contains(got, []byte(planted)) {
				t.Errorf("got JSON %s and error %v, want no secret", got, err)
			}
			for _, h := range []func(*bytes.Buffer) slog.Handler{
				func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
				func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
			} {
				var b bytes.Buffer
				slog.New(h(&b)).With("with", v).Error("message", "attr", v, slog.Group("group", "in", v))
				if got := b.String(); got == "" || strings.Contains(got, planted) {
					t.Errorf("got log line %s, want one without the secret", got)
				}
			}
		})
	}
}

func TestARedactedValueReadsRedacted(t *testing.T) {
	for _, got := range []string{
		fmt.Sprint(channel.NewSecret(planted)), fmt.Sprint(channel.NewText(planted)),
		fmt.Sprintf("%#v", channel.NewSecret("")), fmt.Sprintf("%d", channel.NewText("")),
	} {
		if got != "[redacted]" {
			t.Errorf("got %q, want [redacted]", got)
		}
	}
}

func TestASecretRevealsWhatItWasGiven(t *testing.T) {
	if got := channel.NewSecret(planted).Reveal(); got != planted {
		t.Errorf("got %q, want %q", got, planted)
	}
	var s channel.Secret
	if err := json.Unmarshal([]byte(`"a\"b"`), &s); err != nil || s.Reveal() != `a"b` {
		t.Errorf("got %q and error %v, want a\"b", s.Reveal(), err)
	}
	var x channel.Text
	if err := json.Unmarshal([]byte(`{"env":"X"}`), &x); err == nil {
		t.Error("got no error for an unresolved reference, want one")
	}
	var zero channel.Secret
	if got := zero.Reveal(); got != "" {
		t.Errorf("got %q from the zero secret, want nothing", got)
	}
}
