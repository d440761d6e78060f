//go:build unix

package exec_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/engine"
	"leasehold/store/sqlite"
)

// takes is a holder who keeps events for one target, to which nobody delivers.
type takes struct{}

func (takes) Hold(channel.Term)                             {}
func (takes) Live(channel.Term, channel.Sender)             {}
func (takes) Targets(channel.Term, *channel.Event) []string { return []string{"app"} }
func (takes) Accepted(channel.Term, int64)                  {}
func (takes) Drop(context.Context, channel.Term)            {}
func (takes) Ask(context.Context, channel.Term, channel.Event) (json.RawMessage, bool) {
	return nil, false
}

// box is a node with a store on which programs run as in production.
type box struct {
	*stage
	db  *sqlite.Store
	sup *engine.Supervisor
	log buffer
}

func newBox(t *testing.T, name string) *box {
	t.Helper()
	b := &box{stage: newStage(t)}
	b.config["runs"] = filepath.Join(b.dir, "runs")
	var err error
	if b.db, err = sqlite.Open(t.Context(), filepath.Join(b.dir, "leasehold.db"), sqlite.Options{ReserveBytes: -1, Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	spec := b.spec()
	types, err := channel.NewTypes(resolve, spec)
	if err != nil {
		t.Fatal(err)
	}
	row := admin.Installation{ID: "acme", Type: "exec", Enabled: true, Source: admin.SourceFile, Config: b.installation(name)}
	if err := admin.Seal(types, []byte("key"), &row); err != nil {
		t.Fatal(err)
	}
	if _, err := b.db.PutInstallation(t.Context(), row, 0); err != nil {
		t.Fatal(err)
	}
	if b.sup, err = engine.New(b.db, types, takes{}, engine.Options{Instance: "box", Host: "box", Log: b.log.logger()}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- b.sup.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the node ended with %v, want nil", err)
		}
		if strings.Contains(b.log.String(), token) {
			t.Errorf("the secret is in the log: %s", b.log.String())
		}
		if err := b.db.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return b
}

func (b *box) link() engine.LinkStatus {
	for _, l := range b.sup.Status().Links {
		if l.Installation == "acme" {
			return l
		}
	}
	return engine.LinkStatus{}
}

func (b *box) runs() int { return b.lines(b.config["runs"]) }

func TestUnderTheEngine(t *testing.T) {
	t.Parallel()
	t.Run("a program that ends at once is started less and less often, and its events are stored once", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "crashes")
		var runs int
		var l engine.LinkStatus
		b.await("the wait after the third run", func() bool {
			runs, l = b.runs(), b.link()
			return runs >= 3 && l.State == engine.Backoff && b.runs() == runs // they belong together
		})
		if l.Reason != "exit_1" || l.Attempts != runs {
			t.Errorf("got %+v after %d runs, want every run counted as a failure", l, runs)
		}
		stored, err := b.db.Pending(t.Context(), "acme", 0, "app", 100)
		if err != nil || len(stored) != 3 {
			t.Errorf("got %d events, %v, want the three once, however often they were told", len(stored), err)
		}
	})

	t.Run("one whose credentials are refused is not started again", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "blabs")
		b.await("blocked", func() bool { return b.link().State == engine.Blocked })
		if l := b.link(); l.Reason != "auth" || time.Until(l.NextAttempt) < 4*time.Minute || b.runs() != 1 {
			t.Errorf("got %+v after %d runs, want no attempt for five minutes", l, b.runs())
		}
	})

	t.Run("one that is connected stays, and goes with the node", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "quiet")
		b.await("connected", func() bool { return b.link().State == engine.Connected })
	})
}
