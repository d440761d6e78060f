package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/internal/fault"
)

func (p *program) applyCommand() *cobra.Command {
	var f applyFlags
	c := &cobra.Command{
		Use: "apply", Short: "Make the installations and targets what a file says", Args: exactly(),
		Long: `Make the installations and the targets of the store what a TOML file of
[[installation]] and [[target]] tables says: create what is missing, replace what
differs, and with --prune remove what the file lacks. A file that has no [[target]]
leaves the targets alone, and one that has targets only the installations. What is as
the file says is not touched, and keeps its connection. The rest of the config is not
in that file, and secrets are by reference, as in the config.

The file is checked whole first, and a fault ends the command with 78 before anything
is changed. Then each change is made by itself, against the revision that was read:
when one fails, the command stops there and says what was done.

What the config file owns is changed there. On a store that several nodes share it
owns nothing, and apply is how a file is followed. A target for which something waits,
or that an installation names, is not removed.`,
		Example: "  leasehold apply -f bots.toml --dry-run\n  leasehold apply -f bots.toml --prune",
		RunE: func(c *cobra.Command, _ []string) error {
			if f.file == "" {
				return usage("name the file with --file; see leasehold apply --help")
			}
			return p.apply(c.Context(), f)
		},
	}
	c.Flags().StringVarP(&f.file, "file", "f", "", "the `file`; - is standard input")
	c.Flags().BoolVar(&f.prune, "prune", false, "remove what the file lacks")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "change nothing, and say what would be changed")
	return c
}

type applyFlags struct {
	file          string
	prune, dryRun bool
}

func (p *program) apply(ctx context.Context, f applyFlags) error {
	file, types, err := p.declaration(ctx, f.file)
	if faults, ok := errors.AsType[config.Faults](err); ok {
		return p.faulty(faults)
	}
	if err != nil {
		return err
	}
	n := writing
	if f.dryRun {
		n = reading
	}
	return p.reach(ctx, n, func(ctx context.Context, a *admin.Client) error {
		have, err := everyInstallation(ctx, a, url.Values{})
		if err != nil {
			return err
		}
		targets, err := everyTarget(ctx, a)
		if err != nil {
			return err
		}
		l, err := follow(file, types, have, f.prune)
		more, err2 := followTargets(file, targets, have, f.prune, p.server != "")
		l.targets, err = more, together(err, err2)
		if faults, ok := errors.AsType[config.Faults](err); ok {
			return p.faulty(faults)
		}
		if err != nil {
			return err
		}
		if f.dryRun {
			return p.outcome(l.foreseen(), nil)
		}
		done, err := l.carryOut(ctx, a)
		if errors.Is(err, admin.ErrNoAnswer) { // nothing is done yet, and reach may know somebody else to ask
			return err
		}
		return p.outcome(done, err)
	})
}

// faulty tells faults, as check does.
func (p *program) faulty(faults config.Faults) error {
	if !p.json {
		return faults
	}
	return errors.Join(p.asJSON(map[string]any{"faults": faultList(faults)}), &exitError{code: fault.ExitConfig})
}

// declaration reads and checks the file of an apply, with all that can be told of it
// without the store.
func (p *program) declaration(ctx context.Context, path string) (*config.Config, *channel.Types, error) {
	src := p.source()
	src.Path, src.Text = path, nil
	if path == "-" {
		text, err := io.ReadAll(io.LimitReader(p.Stdin, 16<<20)) // as much as a file may have
		if err != nil {
			return nil, nil, fmt.Errorf("read standard input: %w", err)
		}
		src.Path, src.Text = "standard input", append([]byte{}, text...)
	}
	file, err := config.Declaration(src, p.targetsThere(ctx))
	if err != nil {
		return nil, nil, err
	}
	resolve := p.resolver(p.logger(config.Default().Log, io.Discard))
	types, err := channel.NewTypes(resolve, p.Types...)
	if err != nil {
		return nil, nil, err
	}
	_, _, twins := wanted(file, types, nil)
	return file, types, together(unbuilt(ctx, file, types, resolve), twins)
}

// outcome tells what was done, whole or not.
func (p *program) outcome(done outcome, err error) error {
	switch {
	case p.json:
		err = errors.Join(p.asJSON(done), err)
	default:
		p.showOutcome(done)
	}
	for _, w := range done.Warnings {
		p.hint("warning: %s", p.redact.String(w))
	}
	return err
}

func (p *program) showOutcome(done outcome) {
	will := ""
	if done.DryRun {
		will = "would be "
	}
	for _, x := range done.lists() {
		for _, id := range x.names {
			p.line("%s %s%s", id, will, x.verb)
		}
	}
	for _, x := range done.Targets.lists() {
		for _, name := range x.names {
			p.line("target %s %s%s", name, will, x.verb)
		}
	}
	counts := []string{}
	for i, x := range done.lists() {
		n := len(x.names) + len(done.Targets.lists()[i].names)
		if n > 0 || x.verb != "kept" {
			counts = append(counts, fmt.Sprintf("%d %s", n, x.verb))
		}
	}
	p.line("%s%s, %d unchanged", will, strings.Join(counts, ", "), done.Unchanged+done.Targets.Unchanged)
}

// outcome is what an apply did: with installations by id, with targets by name.
type outcome struct {
	DryRun bool `json:"dry_run"`
	followed
	Targets  followed `json:"targets"`
	Warnings []string `json:"warnings,omitempty"`
}

// followed is what became of one kind of what a file declares.
type followed struct {
	Added     []string `json:"added"`
	Changed   []string `json:"changed"`
	Removed   []string `json:"removed"`
	Kept      []string `json:"kept"` // the file lacks them, and they may not be removed
	Unchanged int      `json:"unchanged"`
}

func nothingYet(unchanged int) followed {
	return followed{Added: []string{}, Changed: []string{}, Removed: []string{}, Kept: []string{}, Unchanged: unchanged}
}

func (f *followed) note(name string, revision int64) {
	if revision == 0 {
		f.Added = append(f.Added, name)
	} else {
		f.Changed = append(f.Changed, name)
	}
}

func (f *followed) done() int { return len(f.Added) + len(f.Changed) + len(f.Removed) }

func (f *followed) lists() []changeList {
	return []changeList{{"added", f.Added}, {"changed", f.Changed}, {"removed", f.Removed}, {"kept", f.Kept}}
}

// inputOf is what a PUT says of an installation of a file.
func inputOf(i config.Installation) admin.Input {
	raw := i.Config
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	return admin.Input{Type: i.Type, Via: i.Via, Config: raw, Labels: i.Labels, Targets: i.Targets, Enabled: &i.Enabled, Interactions: i.Interactions}
}

// everyInstallation are all that q asks for; see admin.Client.Installations.
func everyInstallation(ctx context.Context, a *admin.Client, q url.Values) ([]admin.View, error) {
	return everyPage(q, func(q url.Values) (admin.Page[admin.View], error) { return a.Installations(ctx, q) })
}

// everyPage are the items of all pages of a list.
func everyPage[T any](q url.Values, list func(url.Values) (admin.Page[T], error)) ([]T, error) {
	all := []T{}
	q.Set("limit", "500")
	for {
		page, err := list(q)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all, nil
		}
		q.Set("after", page.Next)
	}
}
