package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/delivery"
	"leasehold/internal/fault"
	"leasehold/internal/loop"
	"leasehold/internal/seal"
	"leasehold/internal/vault"
	"leasehold/store"
)

// masterKeyFile is the name of the master key that the program keeps itself.
const masterKeyFile = "master.key"

// useVault has { secret = "NAME" } refer to what s holds from now on. The first look
// is the caller's.
func (p *program) useVault(c *config.Config, s vault.Store, shared bool, resolve channel.Resolver) *vault.Vault {
	o := vault.Options{Store: s, Shared: shared, Where: "store.master_key", Hide: func(value string) { p.redact.Add(value) }}
	ref := c.Store.MasterKey
	switch {
	case ref.Kind != "":
		o.Keys = func() (seal.Ring, error) {
			text, err := resolve(ref.Kind, ref.Name)
			if err != nil {
				return nil, fmt.Errorf("store.master_key: %w", err)
			}
			r, err := seal.ParseRing(text)
			if err != nil {
				return nil, fmt.Errorf("store.master_key: %w; leasehold keys new-master prints one", err)
			}
			return r, nil
		}
	case shared:
		o.Keys = func() (seal.Ring, error) { return nil, nil }
	default:
		o.Own = seal.File(filepath.Join(string(c.Node.DataDir), masterKeyFile))
		o.Keys, o.Where = o.Own.Read, string(o.Own)
	}
	v := vault.New(o)
	p.vault.Store(v)
	return v
}

// secretOf is the value of a secret in the store.
func (p *program) secretOf(name string) (string, error) {
	v := p.vault.Load()
	if v == nil {
		return "", fmt.Errorf("secret %s is not set here; run leasehold secrets set %s", name, name)
	}
	return v.Secret(name)
}

// lookIntoVault has { secret = "NAME" } refer to what the store holds now, where the
// config has such a reference and the store can be read. What keeps run from starting
// is an error.
func (p *program) lookIntoVault(ctx context.Context, c *config.Config, resolve channel.Resolver) error {
	url, err := c.StoreURL(config.Resolver(resolve))
	if err != nil || !slices.ContainsFunc(c.Uses, func(u config.Use) bool { return u.Kind == "secret" }) {
		return nil
	}
	s, err := p.openToRead(ctx, c, url, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil // check says so, where it compares
	}
	defer func() { _ = s.Close() }() // read only
	_, err = p.useVault(c, s, store.Shared(url), resolve).Refresh(ctx)
	return err
}

// withKeys has http targets sign with the store's keys, too, behind those of the file.
func (p *program) withKeys(targets []delivery.Target) []delivery.Target {
	v := p.vault.Load()
	if v == nil {
		return targets
	}
	for i := range targets {
		t := &targets[i]
		if t.Kind != "http" {
			continue
		}
		for _, key := range v.SigningKeys(t.Name) {
			t.SigningKeys = append(t.SigningKeys, channel.NewText(key))
		}
	}
	return targets
}

// vaultOf is a vault for the handlers. took is told of each change; nil = nobody is.
type vaultOf struct {
	*vault.Vault
	current func() *config.Config
	took    func(ctx context.Context)
}

var _ admin.Vault = (*vaultOf)(nil)

func (v *vaultOf) after(ctx context.Context, err error) error {
	if err == nil && v.took != nil {
		v.took(ctx)
	}
	return err
}

func (v *vaultOf) SetSecret(ctx context.Context, name, value string) error {
	return v.after(ctx, v.Vault.SetSecret(ctx, name, value))
}

func (v *vaultOf) RemoveSecret(ctx context.Context, name string) error {
	return v.after(ctx, v.Vault.RemoveSecret(ctx, name))
}

func (v *vaultOf) AddKey(ctx context.Context, target, value string) (vault.SigningKey, error) {
	i := slices.IndexFunc(v.current().Targets, func(t config.Target) bool { return t.Name == target })
	if i >= 0 && v.current().Targets[i].Type != "http" {
		return vault.SigningKey{}, fault.Errorf(fault.Invalid, "target %s is of type %s, and only what goes to an http target is signed", target, v.current().Targets[i].Type)
	}
	k, err := v.Vault.AddKey(ctx, target, value)
	return k, v.after(ctx, err)
}

func (v *vaultOf) RetireKey(ctx context.Context, id string) (vault.SigningKey, error) {
	k, err := v.Vault.RetireKey(ctx, id)
	return k, v.after(ctx, err)
}

func (v *vaultOf) RemoveKey(ctx context.Context, id string) error {
	return v.after(ctx, v.Vault.RemoveKey(ctx, id))
}

// rekeyPause is between two looks that the store woke us for: it wakes for other
// changes, too.
const rekeyPause = 500 * time.Millisecond

// heedVault takes up what other nodes change of a shared store's secrets and keys.
func (r *reloader) heedVault(ctx context.Context) error {
	if r.n.store.Sole() {
		return nil
	}
	for changed := r.n.store.Watch(ctx); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		switch fresh, err := r.p.vault.Load().Refresh(ctx); {
		case err != nil && ctx.Err() == nil:
			r.log.WarnContext(ctx, "keys not taken up", "error", err, "next_step", "correct it; it is tried again within tasks.key_reload.every")
		case fresh:
			r.rekey(ctx)
		}
		_ = loop.Sleep(ctx, rekeyPause) // what ends it is seen above
	}
	return nil
}

// rekeyed is the cycle of the task key-reload.
func (r *reloader) rekeyed(ctx context.Context) (string, error) {
	_, err := r.p.vault.Load().Refresh(ctx)
	changed, rerr := r.rekeyTargets(ctx)
	if err = errors.Join(err, rerr); err != nil {
		return "", err
	}
	if len(changed) == 0 {
		return "", nil
	}
	return fmt.Sprintf("took up changed keys of %d targets", len(changed)), nil
}

// rekey is rekeyTargets for who has nobody to tell.
func (r *reloader) rekey(ctx context.Context) {
	if _, err := r.rekeyTargets(ctx); err != nil {
		r.log.WarnContext(ctx, "keys not taken up", "error", err, "next_step", "correct it; it is tried again within tasks.key_reload.every")
	}
}

// rekeyTargets gives the targets of the config in force the keys and headers that their
// references have now, all at once; events under way end as they began. A target that
// would lack something keeps what it has.
func (r *reloader) rekeyTargets(ctx context.Context) (changed []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.n.config.Load()
	targets := r.p.withKeys(targetsOf(c, r.n.poster(), r.resolve))
	lost := r.keep(targets, func(string) bool { return true })
	change, err := r.n.dispatcher.Prepare(settingsOf(c, targets))
	if err != nil {
		return nil, err
	}
	_, changed, _ = change.Apply()
	r.targets = targets
	if len(changed) > 0 {
		r.log.InfoContext(ctx, "keys taken up", "targets", changed)
	}
	return changed, errors.Join(lost...)
}

// keep has a target that would lack something keep what it has, if it may: it is what
// it was, but for that.
func (r *reloader) keep(targets []delivery.Target, may func(name string) bool) (lost []error) {
	for i, t := range targets {
		l, lacks := t.Sink.(lacking)
		was := slices.IndexFunc(r.targets, func(o delivery.Target) bool { return o.Name == t.Name })
		if !lacks || was < 0 || !may(t.Name) {
			continue
		}
		if _, before := r.targets[was].Sink.(lacking); !before {
			targets[i] = r.targets[was]
			lost = append(lost, fmt.Errorf("target %s keeps what it has: %s", t.Name, l.what))
		}
	}
	return lost
}
