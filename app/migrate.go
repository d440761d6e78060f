package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"leasehold/config"
	"leasehold/internal/fault"
	"leasehold/store"
	"leasehold/store/maintenance"
)

// manually is the value of store.migrate that leaves the schema to this command.
const manually = "manual"

func (p *program) migrateCommand() *cobra.Command {
	var check bool
	c := &cobra.Command{
		Use: "migrate", Short: "Bring the store's schema up to date", Args: exactly(),
		Long: `Bring the store's schema up to what this program needs. With store.migrate = "auto",
the default, each start does that by itself; with "manual" nothing else does.

A file is copied beside itself first, and nothing may run on it. On a server the nodes
go on: a program of the previous release works with the new schema, unless the changelog
says otherwise; one that does not is refused at its next start.

--check changes nothing. It ends with 0 when this program can run on the store, with 1
when migrations are pending, and with 78 when the schema is too new for it.`,
		Example: `  leasehold migrate --check
  leasehold migrate`,
		RunE: func(c *cobra.Command, _ []string) error { return p.migrate(c.Context(), check) },
	}
	c.Flags().BoolVar(&check, "check", false, "only tell whether there is something to do")
	return c
}

// schemaAnswer is what the command says.
type schemaAnswer struct {
	Store string `json:"store"`
	State string `json:"state"` // fits, pending, newer: it may be used all the same, too_new
	maintenance.Schema
	Applied []string `json:"applied,omitempty"` // by this command
}

func (p *program) migrate(ctx context.Context, check bool) (err error) {
	c, err := p.load()
	if err != nil {
		return err
	}
	b, err := p.box(c)
	if err != nil {
		return err
	}
	o := p.storeOptions(c, b.log)
	before, err := store.Schema(ctx, b.url, o)
	if err != nil {
		return err
	}
	answer := schemaAnswer{Store: store.Shown(b.url), State: before.State(), Schema: before}
	if !check && answer.State == maintenance.SchemaPending {
		if err := p.bring(ctx, c, b, o); err != nil {
			return err
		}
		if answer.Schema, err = store.Schema(ctx, b.url, o); err != nil {
			return err
		}
		answer.State, answer.Applied = answer.Schema.State(), before.Pending
	}
	if err := p.saySchema(answer); err != nil {
		return err
	}
	switch answer.State {
	case maintenance.SchemaTooNew:
		return fault.Errorf(fault.Newer, "%s has schema %d, which needs a program that knows schema %d; this one knows schema %d: install the newer version", answer.Store, answer.Version, answer.MinReader, answer.Known)
	case maintenance.SchemaPending:
		return &exitError{fault.ExitFailed, errors.New("migrations are pending; leasehold migrate applies them")}
	}
	return nil
}

// bring upgrades the schema by opening the store: a file under its lock, while
// nothing runs.
func (p *program) bring(ctx context.Context, c *config.Config, b *box, o store.Options) error {
	if b.path != "" {
		if _, err := p.idle(ctx, c); err != nil {
			return err
		}
	}
	if err := makeDataDir(c); err != nil {
		return err
	}
	o.Manual = false
	s, err := store.Open(ctx, b.url, o)
	if err != nil {
		return err
	}
	return s.Close() //nolint:wrapcheck // it says what was being done
}

func (p *program) saySchema(a schemaAnswer) error {
	if p.json {
		return p.asJSON(a)
	}
	switch a.State {
	case maintenance.SchemaFits:
		p.line("%s has schema %d, as this program.", a.Store, a.Version)
	case maintenance.SchemaNewer:
		p.line("%s has schema %d, of a newer version; this program knows schema %d and may use it.", a.Store, a.Version, a.Known)
	case maintenance.SchemaPending:
		was := fmt.Sprintf("schema %d", a.Version)
		if a.Version == 0 {
			was = "no tables yet"
		}
		p.line("%s has %s; this program needs schema %d.", a.Store, was, a.Known)
		for _, name := range a.Pending {
			p.line("  pending  %s", name)
		}
	}
	for _, name := range a.Applied {
		p.line("  applied  %s", name)
	}
	return nil
}
