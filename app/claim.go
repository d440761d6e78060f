package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/internal/child"
	"leasehold/internal/fault"
	"leasehold/internal/identity"
	"leasehold/store"
	"leasehold/store/sqlite"
)

// lockPoll is how often a passive process looks whether the store is free: the
// takeover is to be over within a second, and a look costs a system call.
const lockPoll = 100 * time.Millisecond

// makeDataDir makes the data folder, for its owner alone.
func makeDataDir(c *config.Config) error {
	dir := string(c.Node.DataDir)
	if dir == "" {
		return fault.Errorf(fault.Invalid, "no data folder is known here; set node.data_dir, or run with --data-dir FOLDER")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.Errorf(fault.ReadOnly, "make the data folder: %w; create it, or set node.data_dir", err)
	}
	return nil
}

// prepare ends what an earlier process has left running: programs of channel types
// and of command targets. It is called under the store's lock, before anything is
// claimed.
func (p *program) prepare(ctx context.Context, c *config.Config, log *slog.Logger) error {
	for _, spec := range p.Types {
		if spec.Prepare == nil {
			continue
		}
		if err := spec.Prepare(ctx, filepath.Join(string(c.Node.DataDir), "run", spec.Name), log); err != nil {
			return fmt.Errorf("prepare channel type %s: %w", spec.Name, err)
		}
	}
	p.programs = child.NewKeeper()
	p.programs.Keep(filepath.Join(string(c.Node.DataDir), "run", "command"))
	left, err := p.programs.Clear()
	for _, l := range left {
		log.WarnContext(ctx, "programs of an earlier process killed", "delivery", l.Owner, "killed", l.Killed, "alive", l.Alive)
	}
	return err
}

// claimFolder makes this process the only one of its identity, where it is not the
// store that does: one that several nodes share tells them apart by that.
func (p *program) claimFolder(c *config.Config, resolve channel.Resolver) (release func() error, err error) {
	url, err := c.StoreURL(config.Resolver(resolve))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err)
	}
	if !store.Shared(url) {
		return func() error { return nil }, nil
	}
	return identity.Lock(string(c.Node.DataDir))
}

// storeOptions are how every command opens the store.
func (p *program) storeOptions(c *config.Config, log *slog.Logger) store.Options {
	return store.Options{
		DataDir: string(c.Node.DataDir), NewStore: p.newStore, Name: c.Node.Name, ForceNetworkFS: c.Store.ForceNetworkFS, Backups: c.BackupsDir(),
		PollOnly: c.Store.PollOnly, RenewTimeout: c.Lease.AttemptTimeout.Std(), Manual: c.Store.Migrate == manually, Log: log,
	}
}

// claimStore opens the store. A file is opened for this process alone: while another
// process holds it, this one is passive: it says who that is, answers on a socket of
// its own, and takes over as soon as the other one ends, however it ends.
func (p *program) claimStore(ctx context.Context, c *config.Config, types *channel.Types, resolve channel.Resolver, log *slog.Logger) (store.Store, error) {
	url, err := c.StoreURL(config.Resolver(resolve))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err)
	}
	for waited, restored := false, false; ; {
		began := time.Now()
		s, err := store.Open(ctx, url, p.storeOptions(c, log))
		var locked *sqlite.LockedError
		switch {
		case err == nil:
			if waited {
				log.InfoContext(ctx, "store taken over", "took_ms", time.Since(began).Milliseconds())
			}
			return s, nil
		case c.Store.AutoRestore && !restored && fault.Is(err, fault.Corrupt):
			if err := autoRestore(ctx, c, url, err, log); err != nil {
				return nil, err
			}
			restored = true
			continue
		case ctx.Err() != nil || !errors.As(err, &locked):
			return nil, err
		}
		waited = true
		if err := p.passive(ctx, c, types, locked, log); err != nil {
			return nil, err
		}
	}
}

// passive answers questions until nobody holds the store, or ctx ends. That it
// cannot answer is no reason not to take over.
func (p *program) passive(ctx context.Context, c *config.Config, types *channel.Types, locked *sqlite.LockedError, log *slog.Logger) error {
	path := passiveSocket(string(c.Admin.Socket))
	log.InfoContext(ctx, "waiting for the store", "holder", locked.Owner.String(), "socket", path)
	answering, err := p.answerPassively(ctx, c, types, locked, path, log)
	if err != nil {
		log.WarnContext(ctx, "nobody can ask this process while it waits", "error", err)
	}
	err = sqlite.WaitForLock(ctx, locked.Path, lockPoll)
	if answering != nil {
		err = errors.Join(err, answering())
	}
	return err
}

func (p *program) answerPassively(ctx context.Context, c *config.Config, types *channel.Types, locked *sqlite.LockedError, path string, log *slog.Logger) (stop func() error, err error) {
	r, err := sqlite.OpenReader(ctx, locked.Path, sqlite.Options{ForceNetworkFS: c.Store.ForceNetworkFS})
	if err != nil {
		return nil, err
	}
	l, err := admin.Listen(ctx, path)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	api := admin.New(p.answers(fixed(c), admin.Options{Store: r, Types: types, Mode: admin.Passive, Holder: locked.Owner.String(), Log: log}))
	answering := start(ctx, func(ctx context.Context) error { return admin.Serve(ctx, l, api, log) })
	return func() error { return errors.Join(answering.stop(), r.Close()) }, nil
}

// passiveSocket is beside the holder's, under a name that tells whose it is.
func passiveSocket(socket string) string {
	ext := filepath.Ext(socket)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(socket, ext), os.Getpid(), ext)
}

// answers completes the handlers' options with what is the same in every mode.
func (p *program) answers(current func() *config.Config, o admin.Options) admin.Options {
	o.Version, o.Redact, o.FingerprintKey = buildVersion(), p.redact, fingerprintKey(current())
	o.TargetNames = func() []string { return targetNames(current()) }
	o.CheckTarget = p.checkTarget
	o.DeclaredTarget = func(name string) string { return declaredTarget(current(), name) }
	o.Declared = func(id string) string { return declared(current(), id) }
	return o
}

// fixed is a config that nothing replaces.
func fixed(c *config.Config) func() *config.Config {
	return func() *config.Config { return c }
}
