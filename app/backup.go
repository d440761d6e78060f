package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/config"
	"leasehold/internal/fault"
	"leasehold/internal/human"
	"leasehold/internal/seal"
	"leasehold/internal/vault"
	"leasehold/store"
	"leasehold/store/maintenance"
)

// makeBackupsDir makes the default folder. One that a person named must be there:
// it may be a disk that is not mounted.
func makeBackupsDir(c *config.Config) error {
	if c.Tasks.Backup.Dir != "" {
		return nil
	}
	if err := os.MkdirAll(c.BackupsDir(), 0o700); err != nil {
		return fault.Errorf(fault.ReadOnly, "make the folder of the backups: %w; check the owner of the data folder", err)
	}
	return nil
}

// backups makes them for the handlers.
type backups struct {
	store   store.Backer
	vault   *vault.Vault
	current func() *config.Config
}

// backupsOf is nil for a store that is copied by other means.
func backupsOf(s store.Store, v *vault.Vault, current func() *config.Config) admin.Backups {
	if b, ok := s.(store.Backer); ok {
		return &backups{b, v, current}
	}
	return nil
}

var _ admin.Backups = (*backups)(nil)

func (b *backups) Backup(ctx context.Context, path, passphrase string) (admin.Backup, error) {
	var key seal.Key
	var locked []byte
	if passphrase != "" {
		var err error
		if key, err = b.vault.MasterKey(ctx); err != nil && !fault.Is(err, fault.Conflict) { // nothing is sealed: there is no key
			return admin.Backup{}, err
		}
		if err == nil {
			if locked, err = key.Lock(passphrase); err != nil {
				return admin.Backup{}, fault.Wrap(fault.Invalid, err)
			}
		}
	}
	if path == "" {
		c := b.current()
		if err := makeBackupsDir(c); err != nil {
			return admin.Backup{}, err
		}
		path = b.store.BackupPath(c.BackupsDir())
	}
	made, err := b.store.BackupWithKey(ctx, path, locked)
	if err != nil {
		return admin.Backup{}, err //nolint:wrapcheck // it says what was being done
	}
	if locked != nil && made.Master != key.ID() {
		return admin.Backup{}, fault.Errorf(fault.Conflict, "the master key was rotated while %s was made, and the one in it does not open it: delete it and make another", made.Path)
	}
	return admin.Backup{MasterKey: made.Master, WithKey: locked != nil, Path: made.Path, Bytes: made.Bytes, At: made.At.UTC(), TookMS: made.Took.Milliseconds(), Through: made.Through}, nil
}

// backupLook is how often the task looks whether a backup is due. A look costs the
// reading of a folder's names, and brings a box that was off in the night back to
// its rhythm.
const backupLook = time.Hour

// backupChore makes a backup when the newest one is old enough. n is the node that
// runs; nil = nothing does.
func backupChore(current func() *config.Config, s store.Backer, n *node) *chore {
	return &chore{name: "backup", every: func(c *config.Config) time.Duration {
		if every := c.Tasks.Backup.Interval(); every > 0 {
			return min(backupLook, every)
		}
		return backupLook
	}, do: func(ctx context.Context) (string, error) {
		c := current()
		every := c.Tasks.Backup.Interval()
		if every == 0 || n != nil && n.clockHeld() != "" { // its name would be of another day
			return "", nil
		}
		if err := makeBackupsDir(c); err != nil {
			return "", err
		}
		done, err := s.Rotate(ctx, maintenance.Rotation{Dir: c.BackupsDir(), Every: every, Keep: c.Tasks.Backup.Keep})
		return rotatedWords(done), err
	}}
}

// rotatedWords are what a rotation did; "" for nothing.
func rotatedWords(r maintenance.Rotated) string {
	if r.Copied.Path == "" {
		return ""
	}
	words := fmt.Sprintf("copied %s to %s", human.Bytes(r.Copied.Bytes), r.Copied.Path)
	if r.Dropped > 0 {
		words += fmt.Sprintf(", deleted %d old", r.Dropped)
	}
	return words
}

func (p *program) backupCommand() *cobra.Command {
	var f keyFlags
	c := &cobra.Command{
		Use: "backup [FILE]", Short: "Copy the store to a file, while it works", Args: atMost(1, "FILE"),
		Long: `Copy the store to a file. The running program makes the copy, without a pause in
what it does; when nothing runs, this command makes it. The copy is checked before it
gets its name, and nothing is overwritten. Without FILE it gets a dated name in the
folder of the backups (tasks.backup.dir, else backups in the data folder).

It holds the store: installations, events, deliveries and positions, and the secrets and
signing keys in it, which only the master key opens. --with-key puts that key into it,
locked by a passphrase; without it, keep the key elsewhere. It holds neither the config
file nor the files and variables that the config refers to: keep those, too.`,
		Example: `  leasehold backup
  leasehold backup --with-key /mnt/usb/leasehold.db
  leasehold backup /mnt/usb/leasehold.db`,
		RunE: func(c *cobra.Command, args []string) error {
			var path string
			if len(args) > 0 {
				var err error
				if path, err = filepath.Abs(args[0]); err != nil {
					return fmt.Errorf("find %s: %w", args[0], err)
				}
			}
			passphrase, err := p.newPassphrase(c.Context(), f)
			if err != nil {
				return err
			}
			return p.reach(c.Context(), copying, func(ctx context.Context, a *admin.Client) error {
				b, err := a.MakeBackup(ctx, path, passphrase)
				if err != nil {
					return err
				}
				p.unseen(b.Path)
				if p.json {
					return p.asJSON(b)
				}
				p.line("%s: %s, made in %v", b.Path, human.Bytes(b.Bytes), (time.Duration(b.TookMS) * time.Millisecond).Round(10*time.Millisecond))
				switch {
				case b.WithKey:
					p.hint("the master key %s is in it; only the passphrase opens it", b.MasterKey)
				case b.MasterKey != "":
					p.hint("its secrets and signing keys open with master key %s, which is not in it: keep that, too, or make it --with-key", b.MasterKey)
				case f.with:
					p.hint("nothing in it is sealed, so there is no master key to put in")
				}
				return nil
			})
		},
	}
	f.add(c)
	return c
}

// unseen hints at a backup that is where the running program sees its path, and
// not where this shell does.
func (p *program) unseen(path string) {
	if _, err := os.Stat(path); err != nil {
		p.hint("leasehold: the running program has written %s, which cannot be seen here (%v): a service may have a /tmp and folders of its own; name a folder that both see", path, err)
	}
}

// atMost wants no more than n arguments, none of them empty.
func atMost(n int, names string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > n {
			return usage("%s takes %s (got %d); see %s --help", c.CommandPath(), names, len(args), c.CommandPath())
		}
		return filled(c, args)
	}
}
