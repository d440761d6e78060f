package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"leasehold/engine"
	"leasehold/store/internal/record"
)

const (
	// A backlog is looked for only where it keeps something alive: behind what is
	// disabled or removed. A rider's deliveries stand under its carrier's lease.
	sqlListInstallations = `SELECT i.id, i.type, i.via, i.config, i.fingerprint, i.identity, i.enabled, i.removed, i.revision,
  CASE WHEN i.enabled = 1 AND i.removed = 0 THEN 0
       WHEN i.via = '' THEN EXISTS (SELECT 1 FROM delivery d WHERE d.state = 0 AND d.lease_id = i.id)
       ELSE EXISTS (SELECT 1 FROM delivery d JOIN event e ON e.seq = d.event_seq
                     WHERE d.state = 0 AND d.lease_id = i.via AND e.installation_id = i.id) END,
  EXISTS (SELECT 1 FROM lease l WHERE l.id = i.id AND l.owner IS NOT NULL)
  FROM installation i ORDER BY i.id`
	sqlListLeases = `SELECT l.id, coalesce(l.owner, ''), s.session_id IS NOT NULL, l.epoch
  FROM lease l LEFT JOIN session s ON s.session_id = l.owner WHERE ` + record.NotLoops + ` ORDER BY l.id`
	sqlListPeers = `SELECT session_id, instance_id, weight, draining FROM session ORDER BY session_id`
)

// List implements engine.Store. It looks first whether the files are still
// there; then, while neither this process nor another program has committed
// anything that it shows, it says Unchanged without reading the database.
func (s *Store) List(ctx context.Context, known int64) (engine.Snapshot, error) {
	if err := s.CheckFiles(); err != nil {
		return engine.Snapshot{}, failed("list installations", err)
	}
	if err := s.c.outside(ctx, func(*writer) error { return s.c.look() }); err != nil {
		return engine.Snapshot{}, failed("list installations", err)
	}
	// Read before the rows: what is committed meanwhile is then listed once more.
	structure := s.structure.Load()
	snap := engine.Snapshot{Version: s.version.Load()}
	if known == snap.Version {
		snap.Unchanged = true
		return snap, nil
	}
	draining, err := s.snapshot(ctx, &snap)
	if err != nil {
		return engine.Snapshot{}, failed("list installations", s.judge(err))
	}
	if !draining {
		s.settled.Store(structure)
	}
	return snap, nil
}

// snapshot fills snap from one moment of the database. It reports whether an
// installation is disabled or removed: then deliveries decide about its backlog.
func (s *Store) snapshot(ctx context.Context, snap *engine.Snapshot) (draining bool, err error) {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }() // it only read
	err = each(ctx, tx, sqlListInstallations, func(rows *sql.Rows) error {
		var i engine.Installation
		var config string
		var leased bool
		err := rows.Scan(&i.ID, &i.Type, &i.Via, &config, &i.Fingerprint, &i.Identity, &i.Enabled, &i.Removed, &i.Revision, &i.Backlog, &leased)
		if err != nil {
			return err
		}
		draining = draining || i.Removed || !i.Enabled
		if i.Removed && !i.Backlog && !leased {
			return nil // the sweeper's
		}
		i.Config = []byte(config)
		snap.Installations = append(snap.Installations, i)
		return nil
	})
	if err != nil {
		return draining, err
	}
	err = each(ctx, tx, sqlListLeases, func(rows *sql.Rows) error {
		var l engine.Lease
		err := rows.Scan(&l.ID, &l.Owner, &l.Alive, &l.Epoch)
		snap.Leases = append(snap.Leases, l)
		return err
	})
	if err != nil {
		return draining, err
	}
	return draining, each(ctx, tx, sqlListPeers, func(rows *sql.Rows) error {
		var p engine.Peer
		err := rows.Scan(&p.Session, &p.Instance, &p.Weight, &p.Draining)
		snap.Peers = append(snap.Peers, p)
		return err
	})
}

// each calls scan for every row of query and closes the rows: an open one pins
// the log.
func each(ctx context.Context, tx *sql.Tx, query string, scan func(*sql.Rows) error) (err error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
