package postgres

import (
	"context"

	"leasehold/internal/fault"
	"leasehold/internal/identity"
)

const (
	sqlStoreKey    = `SELECT store_id, fingerprint_key FROM schema_info WHERE id = 1`
	sqlSetStoreKey = `UPDATE schema_info SET fingerprint_key = $1 WHERE id = 1`
)

// familiar refuses a database that is another one than this node's last: a lost one
// that somebody made anew, or a wrong URL. To go on with it would begin every cursor
// anew, and leave what waits in the other one. It looks before anything is made.
func (s *Store) familiar(ctx context.Context, m *migrator) error {
	if s.opt.DataDir == "" || s.opt.NewStore {
		return nil
	}
	id, err := identity.Load(s.opt.DataDir)
	if err != nil || id.SharedKey == "" { // one of its own, or none yet: it moves here
		return err
	}
	current, err := m.current(ctx)
	if err != nil {
		return err
	}
	if current == 0 {
		return fault.Errorf(fault.Invalid, "the database %s is empty, but this node had one (store %s): %s", s.target, id.Store, familiarAgain)
	}
	var store string
	if err := s.pool.QueryRow(ctx, sqlStoreID).Scan(&store); err != nil {
		return err
	}
	if store != id.Store {
		return fault.Errorf(fault.Invalid, "the database %s is another one (store %s) than this node's (store %s): %s", s.target, store, id.Store, familiarAgain)
	}
	return nil
}

const familiarAgain = "put that back or correct store.url; to go on with this one, run: leasehold run --new-store"

// remember writes down which store belongs to the data folder, and with it the
// folder's identity, if this is its first.
func (s *Store) remember(ctx context.Context) error {
	if s.opt.DataDir == "" {
		return nil
	}
	id, err := identity.Load(s.opt.DataDir)
	if err != nil {
		return err
	}
	var store, key string
	if err := s.pool.QueryRow(ctx, sqlStoreKey).Scan(&store, &key); err != nil {
		return err
	}
	return id.SetStore(store, key)
}

// FingerprintKey keys the fingerprints of configs, for every node alike.
func (s *Store) FingerprintKey(ctx context.Context) ([]byte, error) {
	var store, key string
	err := s.pool.QueryRow(ctx, sqlStoreKey).Scan(&store, &key)
	return []byte(key), failed("read the store's key", s.kind(err))
}

// SetFingerprintKey is for a store that was copied from another one, with the
// fingerprints that are in it.
func (s *Store) SetFingerprintKey(ctx context.Context, key []byte) error {
	_, err := write(ctx, s, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.atomically(ctx, s.pool, step{sql: sqlSetStoreKey, args: []any{string(key)}})
	})
	return failed("set the store's key", err)
}
