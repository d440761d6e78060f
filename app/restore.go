package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/config"
	"leasehold/internal/fault"
	"leasehold/internal/human"
	"leasehold/store"
	"leasehold/store/sqlite"
)

func (p *program) restoreCommand() *cobra.Command {
	var replace, plain, yes bool
	var passphrase string
	c := &cobra.Command{
		Use: "restore FILE", Short: "Put a backup in the place of the store", Args: exactly("FILE"),
		Long: `Put a backup in the place of the store, while nothing runs. The backup is copied and
checked first. A store that is there already stays, unless --replace is given: then it
is moved aside under a dated name, together with its log. Nothing is deleted.

The box that the backup came from must be stopped before this one runs: two boxes
would hold each connection twice, and platforms split or kick. What happened after the
backup was made is not in it: events of that time come again only from platforms that
repeat them, and what was delivered since is delivered again, under its webhook id.`,
		Example: `  leasehold restore /mnt/usb/leasehold.db
  leasehold restore --replace --yes data/backups/leasehold-3f2a91bc-20261130T020000Z.db`,
		RunE: func(c *cobra.Command, args []string) error {
			return p.restore(c.Context(), args[0], passphrase, replace, plain, yes)
		},
	}
	c.Flags().BoolVar(&replace, "replace", false, "move a store that is there aside, and do not refuse")
	c.Flags().BoolVar(&plain, "plain-copy", false, "take a copy that leasehold backup did not make; what stood only in its log is missing")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask: the box that the backup came from is stopped")
	c.Flags().StringVar(&passphrase, "passphrase-file", "", "read the passphrase of a backup that was made --with-key from this `file`")
	return c
}

func (p *program) restore(ctx context.Context, from, passphrase string, replace, plain, yes bool) error {
	c, err := p.load()
	if err != nil {
		return err
	}
	b, err := p.idle(ctx, c)
	if err != nil {
		return err
	}
	if store.Shared(b.url) {
		return fault.Errorf(fault.Invalid, "the store is a server's, which has its own tools for that; see pg_restore")
	}
	found, err := sqlite.ReadBackup(ctx, from)
	if err != nil {
		return err //nolint:wrapcheck // it says what and where
	}
	if err := found.Whole(plain); err != nil {
		return err //nolint:wrapcheck // it says what and why
	}
	if err := p.confirm(found, b.path, yes); err != nil {
		return err
	}
	if err := makeDataDir(c); err != nil {
		return err
	}
	keyed, err := p.bringKey(ctx, c, found, passphrase)
	if err != nil {
		return err
	}
	r, err := sqlite.Restore(ctx, from, b.path, sqlite.RestoreOptions{Replace: replace, PlainCopy: plain, ForceNetworkFS: c.Store.ForceNetworkFS})
	if err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	if err := keyed(); err != nil {
		return err
	}
	if r.Plain {
		p.hint("warning: what stood only in the log of the database that %s was copied from is missing; nobody can tell how much that was", r.Path)
	}
	if p.json {
		return p.asJSON(r)
	}
	if r.Plain {
		p.line("%s is restored from a plain copy.", r.To)
	} else {
		p.line("%s is restored, as of %s.", r.To, stamp(r.At))
	}
	if r.Aside != "" {
		p.line("What was there is now %s; delete it when you need it no more.", r.Aside)
	}
	p.line("Start it with leasehold run. Unless it is this one, %s must be stopped for good before.", whose(r.Backup))
	return nil
}

// idle is the box of a command that needs the store for itself, with nothing
// running on it.
func (p *program) idle(ctx context.Context, c *config.Config) (*box, error) {
	socket := string(c.Admin.Socket)
	if err := admin.Reach(ctx, socket); !errors.Is(err, admin.ErrNoAnswer) {
		if err != nil {
			return nil, err //nolint:wrapcheck // it says what was being done
		}
		return nil, fault.Errorf(fault.Busy, "leasehold runs and answers on %s: stop it first, with Ctrl-C where it runs or with its service, then try again", socket)
	}
	b, err := p.box(c)
	if err != nil {
		return nil, err
	}
	if b.held {
		return nil, fault.Errorf(fault.Busy, "%s has the store %s: stop it first, with Ctrl-C where it runs or with its service, then try again", b.owner.String(), b.path)
	}
	return b, nil
}

// whose says which box a backup came from.
func whose(b sqlite.Backup) string {
	switch {
	case b.Node != "" && b.Host != "" && b.Node != b.Host:
		return fmt.Sprintf("%s (host %s)", b.Node, b.Host)
	case b.Node+b.Host != "":
		return "the box " + max(b.Node, b.Host)
	}
	return "the box that it came from"
}

// confirm asks the person at the terminal, unless told not to. Nobody answers a
// script, so a script says --yes.
func (p *program) confirm(b sqlite.Backup, to string, yes bool) error {
	if yes {
		return nil
	}
	about := fmt.Sprintf("%s is a backup of %s, made %s, of %s.", b.Path, whose(b), human.Ago(b.At), human.Bytes(b.Bytes))
	if b.Plain {
		about = fmt.Sprintf("%s is a plain copy of a store, of %s, without what stood only in its log.", b.Path, human.Bytes(b.Bytes))
	}
	if !interactive(p.Stdin) {
		return usage("%s If it came from another box, stop that one, or two hold each connection; then say so with --yes", about)
	}
	p.hint("%s", about)
	p.hint("It will be %s. If it came from another box, that one must be stopped before this one runs: two would hold each connection twice.", to)
	_, _ = fmt.Fprint(p.Stderr, "Is it stopped, and shall the backup be restored? [yes/no] ")
	answer, err := bufio.NewReader(p.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "yes" && a != "y" {
		return &exitError{fault.ExitFailed, errors.New("nothing was changed")}
	}
	return nil
}

// interactive reports whether a person may answer on r.
func interactive(r io.Reader) bool {
	w, ok := r.(io.Writer) // a terminal is a file, open both ways or not
	return ok && terminal(w)
}
