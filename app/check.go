package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/internal/fault"
	"leasehold/store"
	"leasehold/store/postgres"
)

func (p *program) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Check the config as run would read it, and say what a start would change", Args: exactly(),
		Long: `Read the config as run would. Every fault is named at once with its file, line and
column, and ends the command with 78. A secret that cannot be resolved here is a
warning: the service may see what this shell does not.`,
		Example: "  leasehold check --config /etc/leasehold/leasehold.toml",
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := p.report(c.Context())
			if faults, ok := errors.AsType[config.Faults](err); ok && p.json {
				if err := p.asJSON(map[string]any{"faults": faultList(faults)}); err != nil {
					return err
				}
				return &exitError{code: fault.ExitConfig}
			}
			if err != nil {
				return err
			}
			if p.json {
				return p.asJSON(r)
			}
			p.showReport(r)
			return nil
		},
	}
}

// report is what check found in a config without faults.
type report struct {
	Files         []string `json:"files"`
	DataDir       string   `json:"data_dir"`
	Store         string   `json:"store"`
	Socket        string   `json:"socket"`
	Installations int      `json:"installations"`
	Targets       []string `json:"targets"`
	Lease         string   `json:"lease"`
	Warnings      []string `json:"warnings,omitempty"`
	Restart       []string `json:"restart,omitempty"` // keys of these files that the running program waits for a restart to apply
	Changes       *changes `json:"changes,omitempty"` // none: there is no store to compare with yet
}

// changes are what a start would change in the store.
type changes struct {
	Added   []string `json:"added"`
	Changed []string `json:"changed"`
	Removed []string `json:"removed"`
}

func (p *program) report(ctx context.Context) (report, error) {
	c, err := p.load()
	if err != nil {
		return report{}, err
	}
	return p.check(ctx, c)
}

// faultList is faults as a program reads them.
func faultList(faults config.Faults) []map[string]any {
	all := []map[string]any{}
	for _, f := range faults {
		all = append(all, map[string]any{"file": f.File, "line": f.Line, "column": f.Col, "key": f.Key, "message": f.Message, "hint": f.Hint})
	}
	return all
}

func (p *program) check(ctx context.Context, c *config.Config) (report, error) {
	quiet := slog.New(slog.DiscardHandler)
	resolve := p.resolver(quiet)
	r := report{
		Files: append([]string{}, c.Files...), DataDir: string(c.Node.DataDir), Socket: string(c.Admin.Socket),
		Installations: len(c.Installations), Targets: targetNames(c), Lease: leaseLine(c.Lease),
	}
	if err := p.lookIntoVault(ctx, c, resolve); err != nil {
		return r, err
	}
	r.Warnings, r.Restart = slices.Concat(p.unresolved(c, resolve), circleWarnings(c), shownSecrets(c)), p.awaited(ctx, c)
	types, err := channel.NewTypes(resolve, p.Types...)
	if err != nil {
		return r, err
	}
	_, _, twins := wanted(c, types, nil)
	if err := together(unbuilt(ctx, c, types, resolve), twins, p.mute(c), misshapen(c, resolve)); err != nil {
		return r, err
	}
	if err := p.startable(c, resolve); err != nil {
		return r, err
	}
	if r.Store, err = c.StoreURL(config.Resolver(resolve)); err != nil {
		r.Warnings = append(r.Warnings, err.Error())
		return r, nil
	}
	url := r.Store
	r.Store = store.Shown(url)
	return r, p.compare(ctx, c, types, url, &r)
}

// together are the faults of all errs, sorted by their place; an error that is none
// comes before them.
func together(errs ...error) error {
	var all config.Faults
	for _, err := range errs {
		faults, ok := errors.AsType[config.Faults](err)
		if err != nil && !ok {
			return err
		}
		all = append(all, faults...)
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b config.Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return all
}

// awaited are the keys that the program which runs with the same files cannot change
// before a restart. Nobody may run, or somebody with other files: none then.
func (p *program) awaited(ctx context.Context, c *config.Config) (keys []string) {
	socket := string(c.Admin.Socket)
	if c.Main() == "" || admin.Reach(ctx, socket) != nil {
		return nil
	}
	_ = overSocket(ctx, socket, func(ctx context.Context, a *admin.Client) error { // check goes without its answer
		o, err := a.Status(ctx)
		if err == nil && reads(o, c) {
			keys = o.Config.Restart
		}
		return err
	})
	return keys
}

// reads reports whether the program that answered reads the main file of c.
func reads(o admin.Overview, c *config.Config) bool {
	return o.Config != nil && slices.Contains(o.Config.Files, absolute([]string{c.Main()})[0])
}

// startable is why run would refuse c whatever the store holds. run asks before it
// changes anything: a start that is refused leaves the store as it was.
func (p *program) startable(c *config.Config, resolve channel.Resolver) error {
	if err := admin.CheckSocketPath(string(c.Admin.Socket)); err != nil {
		return err
	}
	if err := together(p.mute(c), misshapen(c, resolve)); err != nil {
		return err
	}
	if _, err := p.proxyFor(c.Connect, resolve); err != nil && c.Connect.Proxy.Kind == "" {
		return err // one whose reference has no value here is a warning to check
	}
	if _, err := authorities(c.Connect.CAFile); err != nil {
		return err
	}
	if err := admin.CheckCertificate(string(c.Admin.TLSCert), string(c.Admin.TLSKey)); err != nil {
		return err
	}
	_, err := p.dispatcher(c, &node{}, nil, nil, resolve, slog.New(slog.DiscardHandler)) // which is never run
	return err
}

// compare fills in what a start would change, when the store can be read.
func (p *program) compare(ctx context.Context, c *config.Config, types *channel.Types, url string, r *report) error {
	have, key, err := p.stored(ctx, c, url)
	there := err == nil
	if err != nil && !fault.Is(err, fault.NotFound) {
		r.Warnings = append(r.Warnings, err.Error())
	}
	want, _, err := wanted(c, types, key)
	if err != nil || !there {
		return err
	}
	r.Changes = &changes{}
	if store.Shared(url) && len(have) > 0 { // a start applies nothing
		if d := unlike(want, have); d.any() {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the store has its own installations, and those of the file are not applied: %d are only in the file, %d are different", len(d.Added), len(d.Changed)))
		}
		return nil
	}
	r.Changes.Added, r.Changes.Changed, r.Changes.Removed = differences(want, have)
	for _, h := range have {
		if d := declared(c, h.ID); h.Source == admin.SourceAPI && d != "" {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: installation %q was made by a command already: a start will refuse; remove it with leasehold installations remove %s, or choose another id", d, h.ID, h.ID))
		}
	}
	return nil
}

// stored are the installations of the store that url names, and what keys their
// fingerprints. fault.NotFound: there is no store.
func (p *program) stored(ctx context.Context, c *config.Config, url string) (have []admin.Installation, key []byte, err error) {
	key = fingerprintKey(c)
	s, err := p.openToRead(ctx, c, url, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, key, err
	}
	defer func() { _ = s.Close() }()           // read only
	if shared, ok := s.(*postgres.Store); ok { // this folder may not know it yet
		if key, err = shared.FingerprintKey(ctx); err != nil {
			return nil, nil, err
		}
	}
	have, err = s.Installations(ctx)
	return have, key, err
}

// unresolved lists the references that have no value here, each with its place.
func (p *program) unresolved(c *config.Config, resolve channel.Resolver) (warnings []string) {
	for _, u := range c.Uses {
		if _, err := resolve(u.Kind, u.Name); err != nil {
			warnings = append(warnings, fmt.Sprintf("%s: %s: %v", u.Pos, u.Key, err))
		}
	}
	return warnings
}

// leaseLine is the inequality that keeps two nodes from running one installation,
// with its numbers. config.Load has refused those that do not satisfy it.
func leaseLine(l config.Lease) string {
	return fmt.Sprintf("renew_every %v + %d × attempt_timeout %v + %d × gap %v = %v, within ttl %v − 0.2 %% − margin %v = %v of trust",
		l.RenewEvery, config.Attempts, l.AttemptTimeout, config.Attempts-1, config.RetryGap, l.Need(), l.TTL, l.Margin, l.Trust())
}

func (p *program) showReport(r report) {
	files := strings.Join(r.Files, ", ")
	if files == "" {
		files = "none; the defaults hold"
	}
	p.fields("config", files, "data folder", r.DataDir, "store", r.Store, "socket", r.Socket,
		"installations", fmt.Sprint(r.Installations), "targets", strings.Join(r.Targets, ", "), "lease", r.Lease)
	switch ch := r.Changes; {
	case ch == nil:
		p.line("The store is not there yet: a start makes it.")
	case len(ch.Added)+len(ch.Changed)+len(ch.Removed) == 0:
		p.line("A start changes no installation.")
	default:
		p.line("A start changes installations:")
		for _, x := range []struct {
			verb string
			ids  []string
		}{{"added", ch.Added}, {"changed", ch.Changed}, {"removed", ch.Removed}} {
			if len(x.ids) > 0 {
				p.line("  %-8s %s", x.verb, strings.Join(x.ids, ", "))
			}
		}
	}
	if len(r.Restart) > 0 {
		p.line("The running program waits for a restart to apply: %s", strings.Join(r.Restart, ", "))
	}
	for _, w := range r.Warnings {
		p.hint("warning: %s", p.redact.String(w))
	}
	p.line("The config is fine.")
}
