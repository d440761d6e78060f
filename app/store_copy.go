package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"leasehold/config"
	"leasehold/internal/fault"
	"leasehold/store"
	"leasehold/store/postgres"
	"leasehold/store/storecopy"
)

func (p *program) storeCommand() *cobra.Command {
	return p.group("store", "Move what is stored to another database", nil, p.storeCopyCommand())
}

func (p *program) storeCopyCommand() *cobra.Command {
	var to, toEnv string
	c := &cobra.Command{
		Use: "copy --to URL", Short: "Copy the store into another database", Args: exactly(),
		Long: `Copy everything that is stored into an empty database, while nothing runs: from a
file to a server, or back. Both are read again at the end and compared. A copy that was
stopped or killed goes on when the command is run again; until it is finished no program
runs on the target. The old store stays as it is.

Sessions are not copied: every installation is free, and what the new store grants is
newer than what the old one did. Waiting deliveries keep their webhook ids.`,
		Example: `  leasehold store copy --to postgres://leasehold@db.example.org/leasehold?sslmode=verify-full
  leasehold store copy --to-env DATABASE_URL`,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case to == "" && toEnv == "":
				return usage("leasehold store copy needs --to URL, or --to-env NAME for one with a password; see leasehold store copy --help")
			case toEnv != "":
				if to = p.env(toEnv); to == "" {
					return usage("the environment variable %s is not set; set it to the URL of the new store", toEnv)
				}
			}
			return p.storeCopy(c.Context(), to, cmp.Or(toEnv, "LEASEHOLD_STORE_URL"))
		},
	}
	c.Flags().StringVar(&to, "to", "", "the `URL` of an empty database: postgres://USER@HOST/DATABASE, or sqlite:FILE")
	c.Flags().StringVar(&toEnv, "to-env", "", "the environment `variable` that holds the URL, so that no list of processes shows its password")
	c.MarkFlagsMutuallyExclusive("to", "to-env")
	return c
}

// copiedStore is the answer of a copy.
type copiedStore struct {
	From string `json:"from"`
	To   string `json:"to"` // without its password
	storecopy.Copied
	TookMS int64 `json:"took_ms"`
}

// storeCopy copies into the store to, whose URL the variable of that name shall hold.
func (p *program) storeCopy(ctx context.Context, to, variable string) (err error) {
	c, err := p.load()
	if err != nil {
		return err
	}
	b, err := p.idle(ctx, c)
	if err != nil {
		return err
	}
	if b.path != "" && absent(b.path) {
		return fault.Errorf(fault.NotFound, "there is no store %s to copy; look at store.url and node.data_dir, or name the config with --config", b.path)
	}
	from, err := store.Open(ctx, b.url, p.storeOptions(c, b.log))
	if err != nil {
		return err
	}
	defer closing(&err, from.Close)
	if err := unshared(ctx, from); err != nil {
		return err
	}
	target, err := store.Open(ctx, to, store.Options{
		Name: c.Node.Name, PollOnly: c.Store.PollOnly, RenewTimeout: c.Lease.AttemptTimeout.Std(), ForceNetworkFS: c.Store.ForceNetworkFS, Copying: true, Log: b.log,
	})
	if err != nil {
		return fmt.Errorf("the new store: %w", err)
	}
	defer closing(&err, target.Close)
	began := time.Now()
	done, err := carryOver(ctx, from, target, p.progress())
	if ctx.Err() != nil {
		return &exitError{fault.ExitFailed, errors.New("stopped; run the same command again, and it goes on from here")}
	}
	if shared, ok := target.(*postgres.Store); ok && err == nil {
		err = shared.SetFingerprintKey(ctx, fingerprintKey(c))
	}
	if err != nil {
		return err
	}
	answer := copiedStore{From: store.Shown(b.url), To: store.Shown(to), Copied: done, TookMS: time.Since(began).Milliseconds()}
	if p.json {
		return p.asJSON(answer)
	}
	p.sayCopied(c, answer, to, variable)
	return nil
}

// unshared refuses a store of which other nodes have sessions. The lock of a file has
// said so before.
func unshared(ctx context.Context, s store.Store) error {
	if s.Sole() {
		return nil
	}
	nodes, err := s.Nodes(ctx)
	if err != nil {
		return err
	}
	if len(nodes) == 0 {
		return nil
	}
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return fault.Errorf(fault.Busy, "%s have sessions in the store: stop them first, then try again; one that was killed is gone when another node has run for lease.ttl", strings.Join(names, ", "))
}

func carryOver(ctx context.Context, from, to store.Store, tell func(storecopy.Progress)) (storecopy.Copied, error) {
	source, err := from.Copying(ctx)
	if err != nil {
		return storecopy.Copied{}, err
	}
	target, err := to.Copying(ctx)
	if err != nil {
		return storecopy.Copied{}, err
	}
	return storecopy.Copy(ctx, source, target, tell)
}

// sayCopied tells a person what there is now, and what to do with it.
func (p *program) sayCopied(c *config.Config, done copiedStore, to, variable string) {
	t := newTable("TABLE", "ROWS", "SHA-256")
	for _, x := range done.Tables {
		t.row(x.Name, fmt.Sprint(x.Rows), x.SHA256[:16])
	}
	t.write(p.Stdout)
	how := "copied and compared"
	if done.Resumed {
		how = "copied, from where an earlier copy had stopped, and compared"
	}
	p.line("")
	p.line("%s is %s with %s, in %v.", done.From, how, done.To, (time.Duration(done.TookMS) * time.Millisecond).Round(10*time.Millisecond))
	file := "the config"
	if name := c.Main(); name != "" {
		file = name
	}
	p.line("Now change %s:", file)
	p.line("")
	p.line("  [store]")
	if store.Shared(to) {
		p.line("  url = { env = %q }", variable)
		p.line("")
		p.line("with that variable set to the URL of %s, and start leasehold.", done.To)
		if store.Shared(done.From) {
			p.line("Start each node with leasehold run --new-store, once: it had another database.")
		}
	} else {
		p.line("  url = %q", to)
		p.line("")
		p.line("and start leasehold.")
	}
	p.line("Run nothing on %s any more: the two stores would each hold every connection.", done.From)
}

// progress shows how far a copy is, on a terminal, in a line that is written over.
func (p *program) progress() func(storecopy.Progress) {
	if !terminal(p.Stderr) {
		return func(storecopy.Progress) {}
	}
	shown := time.Time{}
	return func(x storecopy.Progress) {
		if x.Rows < x.Total && time.Since(shown) < 100*time.Millisecond { // eyes are no faster
			return
		}
		shown = time.Now()
		end := ""
		if x.Rows >= x.Total {
			end = "\n"
		}
		_, _ = io.WriteString(p.Stderr, fmt.Sprintf("\r\x1b[K%s %s: %d of %d%s", x.Step, x.Table, x.Rows, x.Total, end))
	}
}
