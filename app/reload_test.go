package app

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/config"
	"leasehold/internal/loop"
)

func TestSettled(t *testing.T) {
	// write lets a bubble's clock go on between the parts of a file.
	type part struct {
		after time.Duration
		text  string
	}
	for _, c := range []struct {
		name  string
		parts []part
		want  string // of the file as it was settled on; "" = none
		took  time.Duration
	}{
		{"a file that was written whole is read after a moment", nil, "[log]\n", settleFor},
		{"one that is written in parts is read when the last is there", []part{{100 * time.Millisecond, ""}, {100 * time.Millisecond, "[lo"}, {200 * time.Millisecond, "[lease]\n"}}, "[lease]\n", 3 * settleFor},
		{"one that never rests is left for the next look", []part{{200 * time.Millisecond, "a"}, {200 * time.Millisecond, "b"}, {200 * time.Millisecond, "c"}, {200 * time.Millisecond, "d"}, {150 * time.Millisecond, "e"}}, "", settleTries * settleFor},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "leasehold.toml")
				write := func(text string) {
					if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
						t.Error(err)
					}
				}
				write("[log]\n")
				done := make(chan struct{})
				defer func() { <-done }()
				began, r := time.Now(), &reloader{p: &program{configFile: file}}
				first := config.LookAt(r.p.source(), nil)
				go func() {
					defer close(done)
					for _, p := range c.parts {
						if loop.Sleep(t.Context(), p.after) != nil {
							return
						}
						write(p.text)
					}
				}()
				got := r.settled(t.Context(), first)
				if took := time.Since(began); took != c.took {
					t.Errorf("got an answer after %v, want it after %v", took, c.took)
				}
				if c.want == "" {
					if got != nil {
						t.Error("got a look, want none: the file changes all the time")
					}
					return
				}
				write(c.want)
				if got == nil || !config.LookAt(r.p.source(), nil).Same(got) {
					t.Errorf("got %v, want the look at %q", got, c.want)
				}
			})
		})
	}
}
