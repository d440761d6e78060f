package app

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"leasehold/store"
	"leasehold/store/maintenance"
)

// auditedStore answers audits from pages, each by the seq that it begins after.
type auditedStore struct {
	store.Store

	pages map[int64]maintenance.Audited
}

func (s auditedStore) Audit(_ context.Context, since int64) (maintenance.Audited, error) {
	if page, ok := s.pages[since]; ok {
		return page, nil
	}
	return maintenance.Audited{Through: since}, nil
}

func TestAudit(t *testing.T) {
	var said bytes.Buffer
	s := auditedStore{pages: map[int64]maintenance.Audited{
		0:  {Through: 10, Events: 10, More: true},
		10: {Through: 20, Events: 10, Violations: []maintenance.Violation{{Lease: "bot", Seq: 17, Epoch: 4, Before: 5}}},
	}}
	a := &audit{store: s, log: slog.New(slog.NewTextHandler(&said, nil))}

	t.Run("a violation is told in full, with what to do, and counted", func(t *testing.T) {
		_, err := a.run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "1 events stand behind a later epoch") || !strings.Contains(err.Error(), "please report it") {
			t.Errorf("got %v, want the violation and the next step", err)
		}
		if want := "lease=bot seq=17 epoch=4 before=5"; !strings.Contains(said.String(), want) {
			t.Errorf("got the log %q, want %q in it", said.String(), want)
		}
		if n := a.violations.Load(); n != 1 {
			t.Errorf("got %d violations counted, want 1", n)
		}
	})

	t.Run("the next cycle begins behind it, and the count stays", func(t *testing.T) {
		if _, err := a.run(t.Context()); err != nil {
			t.Errorf("got %v, want nothing new", err)
		}
		if n := a.violations.Load(); n != 1 || a.since != 20 {
			t.Errorf("got %d violations and the place %d, want 1 and 20", n, a.since)
		}
	})
}
