package history

import (
	"context"
	"time"

	"leasehold/engine"
	"leasehold/store/storetest"
)

// releasesAnyEpoch plants a fault: a release frees what the session holds, under
// whatever epoch it holds it by now.
func releasesAnyEpoch(s storetest.Store) storetest.Store { return anyEpoch{s} }

type anyEpoch struct{ storetest.Store }

func (s anyEpoch) Release(ctx context.Context, session string, held []engine.Held) ([]string, error) {
	snap, err := s.List(ctx, 0)
	if err != nil {
		return nil, err //nolint:wrapcheck // the store's own
	}
	for i := range held {
		for _, l := range snap.Leases {
			if l.ID == held[i].ID {
				held[i].Epoch = l.Epoch
			}
		}
	}
	return s.Store.Release(ctx, session, held) //nolint:wrapcheck // the store's own
}

// acceptsUnfenced plants a fault: what a former owner accepts is written in the name
// of whoever has the lease.
func acceptsUnfenced(s storetest.Store) storetest.Store { return lax{Store: s} }

// acceptsLate plants a fault: it is looked whether the lease is its owner's, and
// written some time later, as under a lock that nobody waits for.
func acceptsLate(s storetest.Store) storetest.Store { return lax{Store: s, looks: true} }

type lax struct {
	storetest.Store

	looks bool
}

// late is how long the write comes after the look: a takeover fits in between.
const late = 20 * time.Millisecond

func (s lax) Accept(ctx context.Context, r engine.AcceptRequest) (engine.Accepted, error) {
	if s.looks {
		// Nothing is in it, so it is the fence alone.
		if _, err := s.Store.Accept(ctx, engine.AcceptRequest{Term: r.Term, Identity: r.Identity}); err != nil {
			return engine.Accepted{}, err //nolint:wrapcheck // the store's own
		}
		<-time.After(late)
	}
	l, err := s.lease(ctx, r.Term.Installation)
	if err != nil {
		return engine.Accepted{}, err
	}
	if l.Alive {
		r.Term.Owner, r.Term.Epoch = l.Owner, l.Epoch
		for r.Term.Run = 0; ; r.Term.Run++ { // nothing tells which one it is
			got, err := s.Store.Accept(ctx, r)
			if err == nil || r.Term.Run > calls {
				return got, err //nolint:wrapcheck // the store's own
			}
		}
	}
	return s.Store.Accept(ctx, r) //nolint:wrapcheck // the store's own
}

func (s lax) lease(ctx context.Context, id string) (engine.Lease, error) {
	snap, err := s.List(ctx, 0)
	for _, l := range snap.Leases {
		if l.ID == id {
			return l, err //nolint:wrapcheck // the store's own
		}
	}
	return engine.Lease{}, err //nolint:wrapcheck // the store's own
}
