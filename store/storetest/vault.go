package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"leasehold/internal/vault"
)

// sealed is a vault's contents with one of each.
func sealed(now time.Time, c *vault.Contents) error {
	c.Master = vault.Master{ID: "k1", Proof: []byte{0, 1, 0xff}}
	c.Secrets = []vault.Secret{{Name: "acme", UpdatedAt: now, Sealed: []byte("\x00a")}}
	c.SigningKeys = []vault.SigningKey{{ID: "key_1", Target: "app", CreatedAt: now, Sealed: []byte("b\xff")}}
	c.FollowUpKeys = []vault.FollowUpKey{{ID: "k2", CreatedAt: now, Sealed: []byte("c\x00")}}
	return nil
}

func (r *runner) vault(t *testing.T) {
	r.promise(t, "an empty vault has version 0 and nothing in it", func(w *world) {
		s := w.node()
		c, err := s.Vault(w.ctx)
		w.must(err)
		want(w, "contents", fmt.Sprint(c), fmt.Sprint(vault.Contents{}))
		version, err := s.VaultVersion(w.ctx)
		w.must(err)
		want(w, "version", version, 0)
	})

	r.write(t, "what is changed is stored to the byte, and another node reads it", func(w *world) {
		s := w.node()
		w.must(w.do(func() error { return s.ChangeVault(w.ctx, sealed) }))
		var wanted vault.Contents
		w.must(sealed(w.clock.Now(), &wanted))
		got, err := w.h.Open().Vault(w.ctx)
		w.must(err)
		version, err := s.VaultVersion(w.ctx)
		w.must(err)
		want(w, "version", version, got.Version)
		want(w, "it is not 0", version > 0, true)
		got.Version = 0
		want(w, "contents", fmt.Sprint(got), fmt.Sprint(wanted))
	})

	r.promise(t, "each change has a greater version, and one that changes nothing has none", func(w *world) {
		s := w.node()
		w.must(s.ChangeVault(w.ctx, sealed))
		before, err := s.VaultVersion(w.ctx)
		w.must(err)
		w.must(s.ChangeVault(w.ctx, func(time.Time, *vault.Contents) error { return nil }))
		same, err := s.VaultVersion(w.ctx)
		w.must(err)
		want(w, "version after no change", same, before)
		w.must(s.ChangeVault(w.ctx, func(now time.Time, c *vault.Contents) error {
			c.Secrets, c.SigningKeys[0].RetiredAt = nil, now
			return nil
		}))
		c, err := s.Vault(w.ctx)
		w.must(err)
		want(w, "version after a change", c.Version > before, true)
		want(w, "secrets", len(c.Secrets), 0)
		want(w, "retired", c.SigningKeys[0].RetiredAt.Equal(w.clock.Now()), true)
		w.must(s.ChangeVault(w.ctx, func(_ time.Time, c *vault.Contents) error {
			*c = vault.Contents{}
			return nil
		}))
		last, err := s.Vault(w.ctx)
		w.must(err)
		want(w, "version after all was removed", last.Version > c.Version, true)
		want(w, "master key", last.Master.ID, "")
		want(w, "signing keys", len(last.SigningKeys), 0)
	})

	r.promise(t, "an error of the change leaves everything as it was, and is returned", func(w *world) {
		s := w.node()
		w.must(s.ChangeVault(w.ctx, sealed))
		mine := errors.New("mine")
		err := s.ChangeVault(w.ctx, func(_ time.Time, c *vault.Contents) error {
			*c = vault.Contents{}
			return mine
		})
		want(w, "error", errors.Is(err, mine), true)
		c, err := s.Vault(w.ctx)
		w.must(err)
		want(w, "secrets", len(c.Secrets), 1)
	})

	r.promise(t, "of changes at once none is lost", func(w *world) {
		w.node()
		const nodes, each = 3, 5
		ended := make(chan error, nodes)
		for n := range nodes {
			s := w.h.Open()
			go func() {
				var err error
				for i := range each {
					name := fmt.Sprintf("s%d-%d", n, i)
					err = errors.Join(err, s.ChangeVault(w.ctx, func(now time.Time, c *vault.Contents) error {
						c.Secrets = append(c.Secrets, vault.Secret{Name: name, UpdatedAt: now, Sealed: []byte(name)})
						return nil
					}))
				}
				ended <- err
			}()
		}
		for range nodes {
			w.must(<-ended)
		}
		c, err := w.s.Vault(w.ctx)
		w.must(err)
		want(w, "secrets", len(c.Secrets), nodes*each)
		want(w, "in the order of their names", slices.IsSortedFunc(c.Secrets, func(a, b vault.Secret) int {
			if a.Name < b.Name {
				return -1
			}
			return 1
		}), true)
	})

	r.promise(t, "a change wakes whoever watches", func(w *world) {
		s := w.node()
		changes := s.Watch(w.ctx)
		w.must(s.ChangeVault(w.ctx, sealed))
		select {
		case <-changes:
		case <-time.After(time.Minute):
			w.Error("got no wake-up, want one")
		}
	})
}
