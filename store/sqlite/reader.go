package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"leasehold/admin"
	"leasehold/delivery/outbound"
	"leasehold/internal/fault"
	"leasehold/store/internal/record"
)

// Reader is a database that another process writes. It answers every question of
// admin.Store; what would change something is refused with fault.Busy and the
// words of a *LockedError.
type Reader struct {
	*reads
	*record.Writes
}

var _ admin.Store = (*Reader)(nil)

// OpenReader opens the database at path for reading beside the process that has
// its lock. It changes neither the database nor its schema. fault.NotFound:
// there is none; fault.Newer: a newer program wrote it; fault.Conflict: an older
// one did, and whoever opens it next for writing brings it up to date.
func OpenReader(ctx context.Context, path string, o Options) (*Reader, error) {
	if err := setUpDriver(); err != nil {
		return nil, err
	}
	path, err := resolve(path, o.ForceNetworkFS)
	if err != nil {
		return nil, failed("open the store for reading", err)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, failed("open the store for reading", fault.Errorf(fault.NotFound, "there is no database %s yet: leasehold run makes it", path))
	}
	if _, err := readHeader(path); err != nil {
		return nil, failed("open the store for reading", err)
	}
	r := &Reader{reads: &reads{path: path}}
	r.kind = func(err error) error { return classify(path, err) }
	if err := r.open(); err != nil {
		return nil, failed("open the store for reading", classify(path, err))
	}
	r.Writes = record.Through(r.Reads, func(context.Context, func(context.Context, record.Tx) error) error { return r.refuse() })
	if err := r.check(ctx); err != nil {
		return nil, errors.Join(failed("open the store for reading", classify(path, err)), r.db.Close())
	}
	return r, nil
}

// check compares the schema with the one that this program reads.
func (r *Reader) check(ctx context.Context) error {
	m, err := newMigrator(r.db.DB, r.path, migrations())
	if err != nil {
		return err
	}
	current, err := m.current(ctx)
	switch {
	case err != nil:
		return err
	case current == 0:
		return fault.Errorf(fault.NotFound, "%s holds nothing yet: leasehold run fills it", r.path)
	case current < m.Top():
		return fault.Errorf(fault.Conflict, "%s has the older schema %d: leasehold run brings it up to date", r.path, current)
	case current > m.Top():
		if err := m.newer(ctx, current); err != nil {
			return err
		}
	}
	return unfinished(ctx, r.db.DB, r.path)
}

// Close closes the database.
func (r *Reader) Close() error { return failed("close the store", r.db.Close()) }

func (r *Reader) refuse() error {
	return fault.Wrap(fault.Busy, &LockedError{Path: r.path, Owner: readOwner(r.path)})
}

// ReplayDeliveries is refused.
func (r *Reader) ReplayDeliveries(context.Context, []string) ([]admin.Delivery, error) {
	return nil, r.refuse()
}

// RedeliverDeliveries is refused.
func (r *Reader) RedeliverDeliveries(context.Context, []string) ([]admin.Delivery, error) {
	return nil, r.refuse()
}

// DropDeliveries is refused.
func (r *Reader) DropDeliveries(context.Context, []string) (int, error) { return 0, r.refuse() }

// PutMessage is refused.
func (r *Reader) PutMessage(context.Context, outbound.Message) (admin.Message, error) {
	return admin.Message{}, r.refuse()
}

// DrainNode is refused.
func (r *Reader) DrainNode(context.Context, string, bool) error { return r.refuse() }

// SaveTaskRun is refused.
func (r *Reader) SaveTaskRun(context.Context, admin.TaskRun) error { return r.refuse() }
