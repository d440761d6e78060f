package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"leasehold/admin"
	"leasehold/config"
	"leasehold/delivery"
	"leasehold/internal/fault"
	"leasehold/store"
)

// targetRows are the targets of the file as the store keeps them.
func targetRows(c *config.Config) []admin.TargetRow {
	rows := make([]admin.TargetRow, len(c.Targets))
	for i, t := range c.Targets {
		rows[i] = admin.TargetRow{Name: t.Name, Config: t.JSON(), Source: admin.SourceFile}
	}
	return rows
}

// appliedTargets makes the store's targets of the file rows, as applied does with
// installations: in a store that nodes share once, while it has none.
func appliedTargets(ctx context.Context, s store.Store, rows []admin.TargetRow, log *slog.Logger) (added, changed, removed []string, err error) {
	if s.Sole() {
		return reconciledTargets(s.ReconcileTargets(ctx, rows))
	}
	have, err := s.Targets(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if len(have) == 0 {
		return reconciledTargets(s.ReconcileTargets(ctx, rows))
	}
	var own []string
	for _, r := range rows {
		if !slices.ContainsFunc(have, func(h admin.TargetRow) bool { return h.Name == r.Name && string(h.Config) == string(r.Config) }) {
			own = append(own, r.Name)
		}
	}
	if len(own) > 0 {
		log.WarnContext(ctx, "targets of the file were not applied", "targets", own,
			"next_step", "the store has had its own since the first start; change them with leasehold targets set")
	}
	return nil, nil, nil, nil
}

// reconciledTargets is what ReconcileTargets answered; see reconciled.
func reconciledTargets(added, changed, removed []string, err error) ([]string, []string, []string, error) {
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.Invalid) {
		err = fault.Errorf(fault.Invalid, "%w; see leasehold targets list", err)
	}
	return added, changed, removed, err
}

// foreseen are the rows that the store has once the file's are applied. Of one that
// the API made under a name of the file nothing is foreseen: the store refuses it.
func foreseenTargets(sole bool, file, have []admin.TargetRow) []admin.TargetRow {
	if !sole && len(have) > 0 {
		return have
	}
	all := slices.Clone(file)
	for i := range all {
		for _, h := range have {
			if h.Name == all[i].Name && (h.Off != admin.OffGone || string(h.Config) == string(all[i].Config)) {
				all[i].Off, all[i].Reason = h.Off, h.Reason
			}
		}
	}
	for _, h := range have {
		if h.Source != admin.SourceFile && !slices.ContainsFunc(file, func(f admin.TargetRow) bool { return f.Name == h.Name }) {
			all = append(all, h)
		}
	}
	return all
}

// withTargets is c with the targets of rows: those of the file in its order and with
// their places, then the others. What cannot be read, since a newer program wrote it,
// is left out: what comes for it waits.
func withTargets(c *config.Config, rows []admin.TargetRow, src config.Source, log *slog.Logger) *config.Config {
	whole := *c
	whole.Targets = nil
	place := func(name string) int {
		if i := slices.IndexFunc(c.Targets, func(t config.Target) bool { return t.Name == name }); i >= 0 {
			return i
		}
		return len(c.Targets)
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b admin.TargetRow) int { return place(a.Name) - place(b.Name) })
	for _, r := range rows {
		t, err := config.ParseTarget(src, r.Name, r.Config)
		if err != nil {
			log.Warn("target unreadable", "target", r.Name, "error", err, "next_step", "replace it: leasehold targets set, or use the version that wrote it")
			continue
		}
		if i := place(r.Name); i < len(c.Targets) {
			t.Pos = c.Targets[i].Pos
		}
		if r.Off != "" {
			t.Off = r.Reason
		}
		whole.Targets = append(whole.Targets, t)
	}
	if !whole.OwnTargets {
		whole.Delivery.Targets = nil
		for _, t := range whole.Targets {
			whole.Delivery.Targets = append(whole.Delivery.Targets, t.Name)
		}
	}
	return &whole
}

// targets applies the file's targets to the store, and returns c with those that the
// store has then.
func (p *program) targets(ctx context.Context, c *config.Config, s store.Store, log *slog.Logger) (*config.Config, error) {
	added, changed, removed, err := appliedTargets(ctx, s, targetRows(c), log)
	if err != nil {
		return nil, err
	}
	if len(added)+len(changed)+len(removed) > 0 {
		log.InfoContext(ctx, "targets applied", "added", added, "changed", changed, "removed", removed)
	}
	rows, err := s.Targets(ctx)
	if err != nil {
		return nil, err
	}
	return withTargets(c, rows, p.source(), log), nil
}

// checkTarget implements admin.TargetChecker.
func (p *program) checkTarget(name string, raw json.RawMessage) (canonical json.RawMessage, kind string, err error) {
	t, err := config.ParseTarget(p.source(), name, raw)
	if err != nil {
		return nil, "", fault.Wrap(fault.Invalid, err)
	}
	return t.JSON(), t.Type, nil
}

// declaredTarget tells where the file sets a target; "" = it does not.
func declaredTarget(c *config.Config, name string) string {
	i := slices.IndexFunc(c.Targets, func(t config.Target) bool { return t.Name == name })
	if i < 0 || c.Targets[i].Pos == (config.Pos{}) {
		return ""
	}
	return c.Targets[i].Pos.String()
}

// prepared is what settings come to here. A target that cannot be called from this
// node, for want of a file most often, is down with the reason: the others are not its
// hostages.
func prepared(d *delivery.Dispatcher, s delivery.Settings) (*delivery.Change, error) {
	change, err := d.Prepare(s)
	if err == nil {
		return change, nil
	}
	s.Targets = slices.Clone(s.Targets)
	for i, t := range s.Targets {
		if _, err := d.Prepare(delivery.Settings{Targets: []delivery.Target{t}}); err != nil {
			s.Targets[i].Sink = lacking{err.Error()}
		}
	}
	change, err = d.Prepare(s)
	if err != nil {
		return nil, fmt.Errorf("take up the targets: %w", err)
	}
	return change, nil
}
