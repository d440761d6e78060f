package backlog

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDrops(t *testing.T) {
	t.Run("a spell is told as it begins, and with its count when it is over and at the stop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			d := NewDrops(func(int64) {}, slog.New(slog.NewTextHandler(&log, nil)))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- d.Run(ctx) }()
			said := func(when string, words ...string) {
				t.Helper()
				synctest.Wait()
				lines := strings.Count(log.String(), "\n")
				for _, w := range words {
					if !strings.Contains(log.String(), w) {
						t.Errorf("%s: got the log %s, want %q in it", when, log.String(), w)
					}
				}
				if lines != len(words) {
					t.Errorf("%s: got %d lines, want %d: %s", when, lines, len(words), log.String())
				}
				log.Reset()
			}
			said("before anything gave way")
			d.add(ctx, 6, 1000)
			said("at first", `msg="oldest deliveries dropped" deliveries=6 backlog_max=1000`)
			for range 9 {
				time.Sleep(dropSpell - time.Second)
				d.add(ctx, 50, 1000)
			}
			said("while it lasts")
			if got := d.Troubles(); len(got) != 1 || got[0].Reason != "456 deliveries gave way to newer events since the start, the last 0s ago" || got[0].NextStep != NextStep {
				t.Errorf("got %+v, want it as a trouble", got)
			}
			time.Sleep(dropSpell)
			said("when it is over", `msg="deliveries given way" deliveries=456 since_start=456`)
			time.Sleep(dropTrouble)
			if got := d.Troubles(); len(got) != 0 {
				t.Errorf("got %+v an hour later, want none", got)
			}
			d.add(ctx, 1, 1000)
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("got %v, want a clean end", err)
			}
			said("at the stop", `deliveries=1 backlog_max`, `msg="deliveries given way" deliveries=1 since_start=457`)
		})
	})
}
