package engine

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

func TestAcceptQueue(t *testing.T) {
	t.Run("concurrent accepts share a commit, in the order of their calls", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var commits [][]string
			var cursors []string
			gate := make(chan struct{})
			q := &acceptQueue{commit: func(events []Heard, cursor []byte) error {
				<-gate
				ids := []string{}
				for _, e := range events {
					ids = append(ids, e.Event.ID)
				}
				commits, cursors = append(commits, ids), append(cursors, string(cursor))
				return nil
			}}
			var wg sync.WaitGroup
			for i := range 5 {
				wg.Go(func() {
					if err := q.add(t.Context(), []Heard{{Event: eventOf(i)}}, fmt.Appendf(nil, "c%d", i)); err != nil {
						t.Errorf("got %v, want nil", err)
					}
				})
				synctest.Wait() // so that the calls have an order
			}
			close(gate)
			wg.Wait()
			if got := fmt.Sprint(commits, cursors); got != "[[0] [1 2 3 4]] [c0 c4]" {
				t.Errorf("got %s, want the first alone and the others together, each with its newest cursor", got)
			}
		})
	})
	t.Run("a failed commit fails all who share it, and the next goes on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n, gate := 0, make(chan struct{})
			q := &acceptQueue{commit: func([]Heard, []byte) error {
				<-gate
				if n++; n == 2 {
					return errors.New("disk full")
				}
				return nil
			}}
			var failed sync.Map
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					if err := q.add(t.Context(), []Heard{{Event: eventOf(i)}}, nil); err != nil {
						failed.Store(i, true)
					}
				})
				synctest.Wait()
			}
			close(gate)
			wg.Wait()
			for i, want := range []bool{false, true, true, true} {
				if _, got := failed.Load(i); got != want {
					t.Errorf("accept %d: got failed %v, want %v", i, got, want)
				}
			}
			if err := q.add(t.Context(), nil, nil); err != nil {
				t.Errorf("got %v after the failure, want nil", err)
			}
		})
	})
	t.Run("a cursor without events waits for the next events, or five minutes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var cursors []string
			q := &acceptQueue{commit: func(_ []Heard, cursor []byte) error { cursors = append(cursors, string(cursor)); return nil }}
			for i := range 100 {
				q.later(fmt.Appendf(nil, "idle%d", i))
				time.Sleep(time.Second)
			}
			if len(cursors) != 0 {
				t.Errorf("got %v written while idle, want nothing", cursors)
			}
			if err := q.add(t.Context(), []Heard{{Event: eventOf(1)}}, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
			q.later([]byte("last"))
			time.Sleep(cursorEvery + time.Second)
			synctest.Wait()
			if got := fmt.Sprint(cursors); got != "[idle99 last]" {
				t.Errorf("got %s, want the newest with the events, and the last after five minutes", got)
			}
		})
	})
}

func eventOf(i int) channel.Event { return channel.Event{ID: fmt.Sprint(i)} }
