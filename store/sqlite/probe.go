package sqlite

import (
	"context"
	"errors"
)

const (
	// Two pages: a commit that only fits into what the log has already would prove
	// nothing about the disk.
	sqlProbe      = `INSERT INTO probe(id, filler) VALUES (1, randomblob(8192)) ON CONFLICT (id) DO UPDATE SET filler = excluded.filler`
	sqlProbeClean = `DELETE FROM probe`

	// headroom is what must be free, beside the reserve, before events are taken
	// again: one log between two checkpoints, a thousand pages.
	headroom = 4 << 20
)

// Probe implements engine.Store. On a full disk it gives the reserve up, so that
// tidying up can run; what it gained is not for events, so it stays fault.Full
// until there is room beside it, on the disk or inside the database.
func (s *Store) Probe(ctx context.Context) error {
	if err := s.CheckFiles(); err != nil {
		return failed("probe the store", err)
	}
	if s.full.Load() {
		s.giveUpReserve()
		if err := s.c.outside(ctx, checkpoint); err != nil {
			return failed("probe the store", err)
		}
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
	s.log.Info("store has room again", "bytes", room)
	return nil
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
	return free + pages*size - s.reserveMissing(), err
}
