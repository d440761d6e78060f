package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"leasehold/engine"
	"leasehold/store/internal/record"
)

const (
	// A backlog is looked for only where it keeps something alive: behind what is
	// disabled or removed. A rider's deliveries stand under its carrier's lease.
	backlogColumn = `CASE WHEN i.enabled AND NOT i.removed THEN false
       WHEN i.via = '' THEN EXISTS (SELECT 1 FROM delivery d WHERE d.state = 0 AND d.lease_id = i.id)
       ELSE EXISTS (SELECT 1 FROM delivery d JOIN event e ON e.seq = d.event_seq
                     WHERE d.state = 0 AND d.lease_id = i.via AND e.installation_id = i.id) END`

	// The version is a digest of what the list shows, computed where the rows are: ten
	// thousand installations cost a few milliseconds and eight bytes. A counter would
	// be a row that every node writes.
	sqlListVersion = `SELECT
  coalesce((SELECT bit_xor(hash_record_extended(ROW(i.id, i.revision, i.updated_at, ` + backlogColumn + `), 1)) FROM installation i), 0)
# coalesce((SELECT bit_xor(hash_record_extended(ROW(l.id, l.owner, s.session_id IS NOT NULL, l.epoch), 2))
              FROM lease l LEFT JOIN session s ON s.session_id = l.owner WHERE ` + record.NotLoops + `), 0)
# coalesce((SELECT bit_xor(hash_record_extended(ROW(s.session_id, s.instance_id, s.weight, s.draining), 3)) FROM session s), 0)`

	sqlListInstallations = `SELECT i.id, i.type, i.via, i.config, i.fingerprint, i.identity, i.enabled, i.removed, i.revision, ` + backlogColumn + `,
  EXISTS (SELECT 1 FROM lease l WHERE l.id = i.id AND l.owner IS NOT NULL)
  FROM installation i ORDER BY i.id`
	sqlListLeases = `SELECT l.id, coalesce(l.owner, ''), s.session_id IS NOT NULL, l.epoch
  FROM lease l LEFT JOIN session s ON s.session_id = l.owner WHERE ` + record.NotLoops + ` ORDER BY l.id`
	sqlListPeers = `SELECT session_id, instance_id, weight, draining FROM session ORDER BY session_id`

	sqlOneMoment = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
)

// List implements engine.Store. While the digest of what it shows stays the same,
// the rows are not read.
func (s *Store) List(ctx context.Context, known int64) (engine.Snapshot, error) {
	version, err := s.listVersion(ctx)
	if err == nil && version == known {
		return engine.Snapshot{Version: version, Unchanged: true}, nil
	}
	var snap engine.Snapshot
	if err == nil {
		snap, err = s.snapshot(ctx)
	}
	if err != nil {
		s.dropSuspects(err)
		return engine.Snapshot{}, failed("list installations", s.kind(err))
	}
	return snap, nil
}

func (s *Store) listVersion(ctx context.Context) (v int64, err error) {
	err = s.pool.QueryRow(ctx, sqlListVersion).Scan(&v)
	return positive(v), err
}

// positive makes a version of a digest: 0 stands for none.
func positive(digest int64) int64 { return max(1, digest&(1<<63-1)) }

// snapshot reads one moment of the database.
func (s *Store) snapshot(ctx context.Context) (snap engine.Snapshot, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return snap, err
	}
	defer conn.Release()
	err = send(
		ctx, conn, step{sql: sqlOneMoment},
		step{sql: sqlListVersion, scan: func(rows pgx.Rows) error {
			err := rows.Scan(&snap.Version)
			snap.Version = positive(snap.Version)
			return err
		}},
		step{sql: sqlListInstallations, scan: func(rows pgx.Rows) error {
			var i engine.Installation
			var leased bool
			var config string
			err := rows.Scan(&i.ID, &i.Type, &i.Via, &config, &i.Fingerprint, &i.Identity, &i.Enabled, &i.Removed, &i.Revision, &i.Backlog, &leased)
			if i.Removed && !i.Backlog && !leased {
				return err // the sweeper's
			}
			i.Config = []byte(config)
			snap.Installations = append(snap.Installations, i)
			return err
		}},
		step{sql: sqlListLeases, scan: func(rows pgx.Rows) error {
			var l engine.Lease
			err := rows.Scan(&l.ID, &l.Owner, &l.Alive, &l.Epoch)
			snap.Leases = append(snap.Leases, l)
			return err
		}},
		step{sql: sqlListPeers, scan: func(rows pgx.Rows) error {
			var p engine.Peer
			err := rows.Scan(&p.Session, &p.Instance, &p.Weight, &p.Draining)
			snap.Peers = append(snap.Peers, p)
			return err
		}},
	)
	_, ended := conn.Exec(ctx, "ROLLBACK") // it only read
	return snap, errors.Join(err, ended)
}
