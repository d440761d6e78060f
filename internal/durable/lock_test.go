package durable_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"leasehold/internal/durable"
	"leasehold/internal/fault"
)

func TestLock(t *testing.T) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	t.Run("each of several writers adds to what the others wrote", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x")
		add := func(line string) error {
			unlock, err := durable.Lock(t.Context(), path)
			if err != nil {
				return err
			}
			old, err := os.ReadFile(path)
			if errors.Is(err, os.ErrNotExist) {
				err = nil
			}
			return errors.Join(err, durable.Replace(path, append(old, line...), 0o600), unlock())
		}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				if err := add(fmt.Sprintln(i)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		b, err := os.ReadFile(path)
		must(t, err)
		if got := strings.Count(string(b), "\n"); got != 8 {
			t.Errorf("got %d lines of 8 writers: %q", got, b)
		}
	})

	t.Run("who gives up waiting is told why, and takes nothing", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x")
		unlock, err := durable.Lock(t.Context(), path)
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := durable.Lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the caller's deadline", err)
		}
		must(t, unlock())
		unlock, err = durable.Lock(t.Context(), path)
		must(t, err)
		must(t, unlock())
	})

	t.Run("what killed processes left of this file is removed, and nothing else", func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{".x.1", ".x.234", ".x.", ".x.1b", ".y.1", "x.1"} {
			must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		}
		unlock, err := durable.Lock(t.Context(), filepath.Join(dir, "x"))
		must(t, err)
		must(t, unlock())
		var left []string
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			if e.Name() != ".x.lock" { // the lock, where a folder is none
				left = append(left, e.Name())
			}
		}
		if got := fmt.Sprint(left); got != "[.x. .x.1b .y.1 x.1]" {
			t.Errorf("got %v, want all but .x.1 and .x.234", got)
		}
	})

	t.Run("a folder that is not there is named", func(t *testing.T) {
		_, err := durable.Lock(t.Context(), filepath.Join(t.TempDir(), "none", "x"))
		if !fault.Is(err, fault.ReadOnly) || !strings.Contains(err.Error(), "none") {
			t.Errorf("got %v, want that the folder cannot be used", err)
		}
	})
}
