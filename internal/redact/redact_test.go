package redact_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"

	"leasehold/internal/redact"
)

const planted = `hunter2 "quoted"&more`

func TestRedactor(t *testing.T) {
	t.Run("a secret is replaced in every form it is written in", func(t *testing.T) {
		r := redact.New()
		r.Add(planted)
		for _, s := range []string{
			planted, url.QueryEscape(planted), url.PathEscape(planted), fmt.Sprintf("%q", planted),
			`{"a":"hunter2 \"quoted\"\u0026more"}`,
		} {
			if got := r.String("x " + s + " y"); strings.Contains(got, "hunter2") || !strings.Contains(got, redact.Placeholder) {
				t.Errorf("String(%q): got %q, want no trace of the secret", s, got)
			}
		}
	})

	t.Run("a text without a secret stays as it is", func(t *testing.T) {
		r := redact.New()
		if got := r.String("nothing known"); got != "nothing known" {
			t.Errorf("got %q, want it unchanged", got)
		}
		r.Add(planted)
		if got := r.String("hunter"); got != "hunter" {
			t.Errorf("got %q, want it unchanged", got)
		}
	})

	t.Run("of two secrets that begin alike the longer one leaves no rest", func(t *testing.T) {
		r := redact.New()
		r.Add("token-1")
		r.Add("token-1-and-more")
		if got, want := r.String("<token-1-and-more>"), "<"+redact.Placeholder+">"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})

	t.Run("a value too short to be told from a word is refused and said so", func(t *testing.T) {
		r := redact.New()
		if r.Add(" 12345\n") {
			t.Error("Add of five characters: got true, want false")
		}
		if got := r.String("port 12345"); got != "port 12345" {
			t.Errorf("got %q, want it unchanged", got)
		}
	})

	t.Run("secrets are added while texts are redacted", func(t *testing.T) {
		r := redact.New()
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 50 {
					secret := fmt.Sprintf("secret-%d-%d", i, j)
					r.Add(secret)
					if got := r.String(secret); got != redact.Placeholder {
						t.Errorf("got %q, want the placeholder", got)
					}
				}
			})
		}
		wg.Wait()
	})
}

type config struct {
	Token string
	Next  *config
}

type reveals struct{}

func (reveals) LogValue() slog.Value { return slog.GroupValue(slog.String("inner", planted)) }

type broken struct{ text string }

func (b *broken) Error() string { return b.text }

func TestHandler(t *testing.T) {
	line := func(log func(*slog.Logger)) string {
		r := redact.New()
		r.Add(planted)
		var b bytes.Buffer
		log(slog.New(r.Handler(slog.NewJSONHandler(&b, nil))))
		return b.String()
	}
	cases := map[string]func(*slog.Logger){
		"in a message":                     func(l *slog.Logger) { l.Info("said " + planted) },
		"in a string":                      func(l *slog.Logger) { l.Info("x", "a", planted) },
		"in an error that wraps another":   func(l *slog.Logger) { l.Info("x", "error", fmt.Errorf("dial: %w", errors.New(planted))) },
		"in bytes":                         func(l *slog.Logger) { l.Info("x", "a", []byte(planted)) },
		"in a struct":                      func(l *slog.Logger) { l.Info("x", "a", config{Token: planted}) },
		"behind a pointer in a struct":     func(l *slog.Logger) { l.Info("x", "a", &config{Next: &config{Token: planted}}) },
		"in a slice":                       func(l *slog.Logger) { l.Info("x", "a", []string{"b", planted}) },
		"in a group":                       func(l *slog.Logger) { l.Info("x", slog.Group("g", "a", planted)) },
		"in what a LogValuer returns":      func(l *slog.Logger) { l.Info("x", "a", reveals{}) },
		"in what With narrowed":            func(l *slog.Logger) { l.With("a", planted).WithGroup("g").Info("x") },
		"in bytes inside a struct as JSON": func(l *slog.Logger) { l.Info("x", "a", struct{ B []byte }{[]byte(planted)}) },
	}
	for where, log := range cases {
		t.Run("a secret "+where+" is replaced", func(t *testing.T) {
			got := line(log)
			for _, form := range []string{"hunter2", "aHVudGVyMi"} {
				if strings.Contains(got, form) {
					t.Errorf("got %s, want no trace of the secret", got)
				}
			}
			if !strings.Contains(got, redact.Placeholder) {
				t.Errorf("got %s, want the placeholder", got)
			}
		})
	}

	t.Run("a value without a secret is printed as the handler prints it", func(t *testing.T) {
		got := line(func(l *slog.Logger) { l.Info("x", "n", 7, "list", []string{"a", "b"}, "none", nil) })
		for _, want := range []string{`"n":7`, `"list":["a","b"]`, `"none":null`} {
			if !strings.Contains(got, want) {
				t.Errorf("got %s, want %s in it", got, want)
			}
		}
	})

	t.Run("an error whose text panics costs nothing but its text", func(t *testing.T) {
		got := line(func(l *slog.Logger) { l.Info("x", "error", (*broken)(nil)) })
		if !strings.Contains(got, `"msg":"x"`) {
			t.Errorf("got %s, want a record", got)
		}
	})
}
