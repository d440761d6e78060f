package sqlite

import (
	"context"
	"errors"
	"time"
)

const (
	// Two pages: a commit that only fits into what the log has already would prove
	// nothing about the disk.
	sqlProbe      = `INSERT INTO probe(id, filler) VALUES (1, randomblob(8192)) ON CONFLICT (id) DO UPDATE SET filler = excluded.filler`
	sqlProbeClean = `DELETE FROM probe`

	// headroom is what must be free, beside the reserve, before events are taken
	// again: one log between two checkpoints, a thousand pages.
	headroom = 4 << 20

	// fullSweep is the events that one probe of a full disk looks at: it must answer
	// within seconds.
	fullSweep = 10_000
)

// Probe implements engine.Store. On a full disk it gives the reserve up, so that
// tidying up can run; what it gained is not for events, so it stays fault.Full
// until there is room beside it, on the disk or inside the database.
func (s *Store) Probe(ctx context.Context) error {
	if err := s.CheckFiles(); err != nil {
		return failed("probe the store", err)
	}
	if s.full.Load() {
		s.makeRoom(ctx)
	}
	for _, query := range []string{sqlProbe, sqlProbeClean} {
		err := s.c.do(ctx, func(w *writer) error {
			_, err := w.exec(query)
			return err
		})
		if err != nil {
			return failed("probe the store", err)
		}
	}
	if !s.full.Load() {
		return nil
	}
	room, err := s.room(ctx)
	if err != nil {
		return failed("probe the store", err)
	}
	if room < headroom {
		return failed("probe the store", fullError(s.path, errors.New("too little room")))
	}
	s.full.Store(false)
	s.log.InfoContext(ctx, "store has room again", "bytes", room)
	return nil
}

// makeRoom does what a full disk allows: with the reserve given up, a log can be
// folded in and the sweeper's work can begin, as it was last told to keep things.
// What fails is tried again by the next probe.
func (s *Store) makeRoom(ctx context.Context) {
	s.giveUpReserve()
	err := s.c.outside(ctx, checkpoint)
	if keep := s.retention.Load(); keep != nil {
		now := *keep
		now.Budget, now.Pause = fullSweep, time.Millisecond
		_, swept := s.sweep(ctx, now)
		err = errors.Join(err, swept, s.c.outside(ctx, checkpoint))
	}
	if err != nil {
		s.log.DebugContext(ctx, "no room made", "error", err)
	}
}

// checkpoint folds what it can of the log into the database, without waiting for
// readers.
func checkpoint(w *writer) error {
	_, err := w.exec("PRAGMA wal_checkpoint(PASSIVE)")
	return err
}

// room is what may be written: free space, and pages inside the database that a
// sweep has emptied, without what the reserve is to have back.
func (s *Store) room(ctx context.Context) (int64, error) {
	free, err := diskFree(s.path)
	if err != nil {
		return 0, err
	}
	var pages, size int64
	err = s.c.outside(ctx, func(w *writer) error {
		return errors.Join(w.get("PRAGMA freelist_count", nil, &pages), w.get("PRAGMA page_size", nil, &size))
	})
	return free + pages*size - s.reserveOwed(), err
}
