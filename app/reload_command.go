package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/internal/fault"
)

func (p *program) reloadCommand() *cobra.Command {
	var allowEmpty bool
	c := &cobra.Command{
		Use: "reload", Short: "Apply the config files to the running program", Args: exactly(),
		Long: `Have the running program read its files again and say what changed: all of it, or
nothing when something is wrong, which ends the command with 78. A changed file is
applied without it, too, within seconds; a changed secret file is not.

An installation whose connection is as it was keeps it. Keys that cannot change while
it runs are named, and wait for a restart.

A file that has become empty is refused, as a full disk leaves one, too, and all that
runs would end. --allow-empty says that it is meant.`,
		Example: "  leasehold reload",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.reach(c.Context(), running, func(ctx context.Context, a *admin.Client) error {
				done, err := a.Reload(ctx, allowEmpty)
				switch faulty, refused := errors.AsType[admin.Faulty](err); {
				case refused && p.json:
					return errors.Join(p.asJSON(map[string]any{"faults": faulty}), &exitError{code: fault.ExitConfig})
				case refused:
					for _, f := range faulty {
						p.hint("%s", p.redact.String(f.Text))
					}
					p.hint("leasehold: nothing is applied; correct the files, what ran before runs on")
					return &exitError{code: fault.ExitConfig}
				case err != nil:
					return err
				case p.json:
					return p.asJSON(done)
				}
				p.showReloaded(done)
				return nil
			})
		},
	}
	c.Flags().BoolVar(&allowEmpty, "allow-empty", false, "apply a file, or a conf.d, that has become empty")
	return c
}

func (p *program) showReloaded(d admin.Reloaded) {
	files := strings.Join(d.Files, ", ")
	if files == "" {
		files = "the defaults; there is no file"
	}
	if idle(d) {
		p.line("Nothing changed in %s", files)
	} else {
		p.line("Applied %s", files)
		p.fields("installations", changesLine(d.Installations), "targets", changesLine(d.Targets), "keys", strings.Join(d.Keys, ", "))
	}
	if len(d.Restart) > 0 {
		p.line("Waits for a restart: %s", strings.Join(d.Restart, ", "))
	}
}

// changesLine names what changed; "" for nothing.
func changesLine(c admin.Changes) string {
	var parts []string
	for _, x := range changeLists(c) {
		if len(x.names) > 0 {
			parts = append(parts, x.verb+" "+some(x.names))
		}
	}
	return strings.Join(parts, "; ")
}

type changeList struct {
	verb  string
	names []string
}

func changeLists(c admin.Changes) []changeList {
	return []changeList{{"added", c.Added}, {"changed", c.Changed}, {"removed", c.Removed}}
}

// some is a list that may be long, on a line.
func some(names []string) string {
	const most = 20
	if n := len(names) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
}

// reloadedWords are what a reload did, in a few words; "" for nothing.
func reloadedWords(d admin.Reloaded) string {
	var parts []string
	for _, of := range []struct {
		what    string
		changes admin.Changes
	}{{"installations", d.Installations}, {"targets", d.Targets}} {
		for _, x := range changeLists(of.changes) {
			if len(x.names) > 0 {
				parts = append(parts, fmt.Sprintf("%d %s %s", len(x.names), of.what, x.verb))
			}
		}
	}
	if len(d.Keys) > 0 {
		parts = append(parts, strings.Join(d.Keys, ", ")+" changed")
	}
	return strings.Join(parts, "; ")
}

// reloadedAttrs are the same for the log.
func reloadedAttrs(d admin.Reloaded) (attrs []slog.Attr) {
	note := func(name string, names []string) {
		if len(names) > 0 {
			attrs = append(attrs, slog.Any(name, names))
		}
	}
	for _, x := range changeLists(d.Installations) {
		note(x.verb, x.names)
	}
	for _, x := range changeLists(d.Targets) {
		note("targets_"+x.verb, x.names)
	}
	note("keys", d.Keys)
	return attrs
}
