package record

import (
	"context"
	"encoding/json"
	"fmt"

	"leasehold/admin"
	"leasehold/internal/fault"
)

const (
	targetColumns = `SELECT name, config, source, revision, off, reason, off_since FROM target`
	sqlTargets    = targetColumns + ` ORDER BY name`
	sqlTarget     = targetColumns + ` WHERE name = $1`
	sqlPutTarget  = `INSERT INTO target(name, config, source, revision, off, reason, off_since, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
ON CONFLICT (name) DO UPDATE SET config = excluded.config, source = excluded.source, revision = excluded.revision,
       off = excluded.off, reason = excluded.reason, off_since = excluded.off_since, updated_at = excluded.updated_at`
	sqlDeleteTarget = `DELETE FROM target WHERE name = $1`
	sqlFileTargets  = `SELECT name FROM target WHERE source = 'file'`
)

type targetRow struct {
	Name, Config, Source string
	Revision             int64
	Off, Reason          string
	OffSince             int64 `db:"off_since"`
}

func (r *targetRow) target() admin.TargetRow {
	return admin.TargetRow{
		Name: r.Name, Config: json.RawMessage(r.Config), Source: r.Source, Revision: r.Revision, Off: r.Off, Reason: r.Reason, OffSince: Time(r.OffSince),
	}
}

// Targets implements admin.TargetStore.
func (r *Reads) Targets(ctx context.Context) ([]admin.TargetRow, error) {
	var rows []targetRow
	if err := r.db.SelectContext(ctx, &rows, sqlTargets); err != nil {
		return nil, fmt.Errorf("list targets: %w", r.kind(err))
	}
	all := make([]admin.TargetRow, len(rows))
	for i := range rows {
		all[i] = rows[i].target()
	}
	return all, nil
}

// Target implements admin.TargetStore.
func (r *Reads) Target(ctx context.Context, name string) (admin.TargetRow, error) {
	var rows []targetRow
	if err := r.db.SelectContext(ctx, &rows, sqlTarget, name); err != nil {
		return admin.TargetRow{}, fmt.Errorf("read target %s: %w", name, r.kind(err))
	}
	if len(rows) == 0 {
		return admin.TargetRow{}, noTarget(name)
	}
	return rows[0].target(), nil
}

func noTarget(name string) error {
	return fault.Errorf(fault.NotFound, "there is no target %s; see leasehold targets list", name)
}

// getTarget reads a row; false: there is none.
func getTarget(ctx context.Context, tx Tx, name string) (r targetRow, there bool, err error) {
	there, err = tx.Get(ctx, sqlTarget, []any{name}, &r.Name, &r.Config, &r.Source, &r.Revision, &r.Off, &r.Reason, &r.OffSince)
	return r, there, err
}

// put writes r as the next revision.
func (r *targetRow) put(ctx context.Context, tx Tx) error {
	r.Revision++
	_, err := tx.Exec(ctx, sqlPutTarget, r.Name, r.Config, r.Source, r.Revision, r.Off, r.Reason, r.OffSince, tx.Now())
	tx.Wake("target")
	return err
}

// set gives r a config. What answered 410 is asked again with another one.
func (r *targetRow) set(t admin.TargetRow, source string) {
	if r.Off == admin.OffGone && r.Config != string(t.Config) {
		r.Off, r.Reason, r.OffSince = "", "", 0
	}
	r.Name, r.Config, r.Source = t.Name, string(t.Config), source
}

// PutTarget implements admin.TargetStore.
func (w *Writes) PutTarget(ctx context.Context, t admin.TargetRow, revision int64) (admin.TargetRow, error) {
	var out targetRow
	err := w.change(ctx, func(ctx context.Context, tx Tx) error {
		r, there, err := getTarget(ctx, tx, t.Name)
		switch {
		case err != nil:
			return err
		case revision == 0 && there:
			return fault.Errorf(fault.Conflict, "there is a target %s already", t.Name)
		case revision != 0 && !there:
			return noTarget(t.Name)
		case revision != 0 && r.Revision != revision:
			return moved(r, revision)
		}
		r.set(t, t.Source)
		out = r
		return out.put(ctx, tx)
	})
	if err != nil {
		return admin.TargetRow{}, fmt.Errorf("put target %s: %w", t.Name, err)
	}
	return out.target(), nil
}

func moved(r targetRow, revision int64) error {
	return fault.Errorf(fault.Conflict, "target %s was changed meanwhile: it has revision %d, not %d", r.Name, r.Revision, revision)
}

// SwitchTarget implements admin.TargetStore.
func (w *Writes) SwitchTarget(ctx context.Context, name, off, reason string) error {
	err := w.change(ctx, func(ctx context.Context, tx Tx) error {
		r, there, err := getTarget(ctx, tx, name)
		switch {
		case err != nil:
			return err
		case !there:
			return noTarget(name)
		case r.Off == off, r.Off == admin.OffAsked && off == admin.OffGone:
			return nil
		}
		r.Off, r.Reason, r.OffSince = off, Plain(reason), tx.Now()
		if off == "" {
			r.OffSince = 0
		}
		return r.put(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("switch target %s: %w", name, err)
	}
	return nil
}

const (
	// endBatch is the deliveries of one transaction that end with their target: some
	// 20 ms of the write lock.
	endBatch = 1000
	// removedReason is the reason of those dead letters.
	removedReason = "its target was removed"
)

// RemoveTarget implements admin.TargetStore. The row goes with the last batch, so
// that one that was cut short can be made again.
func (w *Writes) RemoveTarget(ctx context.Context, name string, revision int64, force bool) (dead int, err error) {
	for {
		var ended int64
		err := w.change(ctx, func(ctx context.Context, tx Tx) (err error) {
			ended, err = w.removeTarget(ctx, tx, name, revision, force)
			return err
		})
		if err != nil {
			return dead, fmt.Errorf("remove target %s: %w", name, err)
		}
		if dead += int(ended); ended < endBatch {
			return dead, nil
		}
	}
}

func (w *Writes) removeTarget(ctx context.Context, tx Tx, name string, revision int64, force bool) (ended int64, err error) {
	r, there, err := getTarget(ctx, tx, name)
	switch {
	case err != nil:
		return 0, err
	case !there:
		return 0, noTarget(name)
	case r.Revision != revision:
		return 0, moved(r, revision)
	}
	if !force {
		var waiting int64
		if _, err := tx.Get(ctx, w.reads.d.CountWaiting, []any{name}, &waiting); err != nil {
			return 0, err
		}
		if waiting > 0 {
			return 0, fault.Errorf(fault.Conflict, "what waits for target %s would end as dead letters: %d deliveries; if that is meant: leasehold targets remove --force %s", name, waiting, name)
		}
	}
	if ended, err = tx.Exec(ctx, w.reads.d.EndWaiting, name, tx.Now(), removedReason, endBatch); err != nil {
		return 0, err
	}
	tx.Wake("target")
	if ended == endBatch {
		return ended, nil
	}
	_, err = tx.Exec(ctx, sqlDeleteTarget, name)
	return ended, err
}

// ReconcileTargets implements admin.TargetStore. Where nothing differs, nothing is
// written.
func (w *Writes) ReconcileTargets(ctx context.Context, want []admin.TargetRow) (added, changed, removed []string, err error) {
	var d differences
	err = w.change(ctx, func(ctx context.Context, tx Tx) error {
		d = differences{}
		named := map[string]bool{}
		for _, t := range want {
			named[t.Name] = true
			if err := d.reconcileTarget(ctx, tx, t); err != nil {
				return err
			}
		}
		all, err := tx.Column(ctx, sqlFileTargets)
		if err != nil {
			return err
		}
		for _, name := range all {
			if named[name] {
				continue
			}
			if _, err := tx.Exec(ctx, sqlDeleteTarget, name); err != nil {
				return err
			}
			tx.Wake("target")
			d.removed = append(d.removed, name)
		}
		return nil
	})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("apply the configured targets: %w", err)
	}
	return d.added, d.changed, d.removed, nil
}

func (d *differences) reconcileTarget(ctx context.Context, tx Tx, t admin.TargetRow) error {
	r, there, err := getTarget(ctx, tx, t.Name)
	switch {
	case err != nil:
		return err
	case there && r.Source != admin.SourceFile:
		return fault.Errorf(fault.Conflict, "target %s was made by the API: remove it there, or give the one in the file another name", t.Name)
	case there && r.Config == string(t.Config):
		return nil
	case there:
		d.changed = append(d.changed, t.Name)
	default:
		d.added = append(d.added, t.Name)
	}
	r.set(t, admin.SourceFile)
	return r.put(ctx, tx)
}
