package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"leasehold/config"
	"leasehold/internal/fault"
	"leasehold/internal/seal"
	"leasehold/store/sqlite"
)

// keyFlags say that the master key travels with a backup, and what locks it.
type keyFlags struct {
	with bool
	file string
}

func (f *keyFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.with, "with-key", false, "put the master key into it, locked by a passphrase, which is asked for")
	c.Flags().StringVar(&f.file, "passphrase-file", "", "with --with-key: read the passphrase from this `file`")
}

// newPassphrase is what shall lock the key; "" = it does not travel.
func (p *program) newPassphrase(ctx context.Context, f keyFlags) (string, error) {
	switch {
	case !f.with && f.file != "":
		return "", usage("--passphrase-file goes with --with-key")
	case !f.with:
		return "", nil
	}
	first, a, err := p.passphrase(ctx, f.file)
	if err != nil {
		return "", err
	}
	if len(first) < seal.MinPassphrase {
		return "", usage("the passphrase must have at least %d characters: whoever finds the file may guess as long as he likes", seal.MinPassphrase)
	}
	if a == nil {
		return first, nil
	}
	again, err := a.secret(ctx, "passphrase, again")
	if err == nil && again != first {
		err = usage("the two passphrases differ; nothing was done")
	}
	return first, err
}

// passphrase reads one from a file or, where there is none, asks for it; then it
// returns who asked.
func (p *program) passphrase(ctx context.Context, file string) (string, *asker, error) {
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", nil, usage("read the passphrase: %w", err)
		}
		text := strings.TrimRight(string(b), "\r\n")
		p.redact.Add(text)
		return text, nil, nil
	}
	if !p.typing() {
		return "", nil, usage("a passphrase is asked for at a terminal; name a file with --passphrase-file")
	}
	a := p.ask(ctx)
	text, err := a.secret(ctx, "passphrase")
	p.redact.Add(text)
	return text, a, err
}

// bringKey has the master key of a backup at hand before the backup is in its place.
// done leaves it alone there, and keeps what was there under a dated name, for a
// database that was moved aside.
func (p *program) bringKey(ctx context.Context, c *config.Config, b sqlite.Backup, file string) (done func() error, err error) {
	nothing := func() error { return nil }
	if b.Master == "" {
		return nothing, nil
	}
	own := seal.File(filepath.Join(string(c.Node.DataDir), masterKeyFile))
	there, err := own.Read()
	if err != nil {
		return nil, err
	}
	_, has := there.Find(b.Master)
	switch {
	case has:
		return nothing, nil
	case c.Store.MasterKey.Kind != "":
		p.hint("its secrets and signing keys open with master key %s: store.master_key must have that one", b.Master)
		return nothing, nil
	case b.Locked == nil:
		p.hint("its secrets and signing keys open with master key %s, which is not in it: put that key into %s before the start, or remove them: leasehold secrets list, leasehold keys list", b.Master, own)
		return nothing, nil
	}
	text, _, err := p.passphrase(ctx, file)
	if err != nil {
		return nil, err
	}
	key, err := seal.Unlock(b.Locked, text)
	if err == nil && key.ID() != b.Master {
		err = errors.New("it holds another key than it needs")
	}
	if err != nil {
		return nil, fault.Errorf(fault.Denied, "open the master key in %s: %w", b.Path, err)
	}
	p.redact.Add(key.Text())
	if err := own.Write(append(seal.Ring{key}, there...)); err != nil {
		return nil, err
	}
	return func() error {
		if len(there) == 0 {
			return nil
		}
		aside := seal.File(fmt.Sprintf("%s.replaced-%s", own, time.Now().UTC().Format("20060102T150405.000Z")))
		if err := aside.Write(there); err != nil {
			return err
		}
		p.hint("the master key that was there is now %s", aside)
		return own.Write(seal.Ring{key})
	}, nil
}
