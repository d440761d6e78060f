package vault

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"time"

	"leasehold/internal/fault"
	"leasehold/internal/seal"
)

// AddKey keeps a signing key for a target, from now on. The value is not returned by
// anything afterwards.
func (v *Vault) AddKey(ctx context.Context, target, value string) (SigningKey, error) {
	if !nameForm.MatchString(target) {
		return SigningKey{}, fault.Errorf(fault.Invalid, "%q is no name of a target; see leasehold status for those that there are", target)
	}
	var id [6]byte // few keys are kept: 48 bits never meet
	_, _ = rand.Read(id[:])
	k := SigningKey{ID: "key_" + hex.EncodeToString(id[:]), Target: target}
	v.hideKey(value)
	return k, v.change(ctx, func(now time.Time, c *Contents) error {
		key, err := v.sealing(c)
		if err != nil {
			return err
		}
		k.CreatedAt = now
		k.Sealed = key.Seal(k.owner(), []byte(value))
		c.SigningKeys = append(slices.DeleteFunc(c.SigningKeys, k.is), k)
		return nil
	})
}

// RetireKey has a key sign nothing more. It stays listed until it is removed. It needs
// no master key. fault.NotFound: there is none; fault.Conflict: it is retired.
func (v *Vault) RetireKey(ctx context.Context, id string) (retired SigningKey, err error) {
	err = v.change(ctx, func(now time.Time, c *Contents) error {
		i := slices.IndexFunc(c.SigningKeys, SigningKey{ID: id}.is)
		switch {
		case i < 0:
			return noKey(id)
		case !c.SigningKeys[i].RetiredAt.IsZero():
			return fault.Errorf(fault.Conflict, "signing key %s is retired already; leasehold keys remove %s forgets it", id, id)
		}
		c.SigningKeys[i].RetiredAt = now
		retired = c.SigningKeys[i]
		return nil
	})
	return retired, err
}

// RemoveKey forgets a key, which signs nothing more. It needs no master key.
// fault.NotFound: there is none.
func (v *Vault) RemoveKey(ctx context.Context, id string) error {
	return v.change(ctx, func(_ time.Time, c *Contents) error {
		n := len(c.SigningKeys)
		c.SigningKeys = slices.DeleteFunc(c.SigningKeys, SigningKey{ID: id}.is)
		if len(c.SigningKeys) == n {
			return noKey(id)
		}
		return nil
	})
}

func (k SigningKey) is(o SigningKey) bool { return k.ID == o.ID }

func noKey(id string) error {
	return fault.Errorf(fault.NotFound, "there is no signing key %s in the store; see leasehold keys list", id)
}

// Rotated is what a rotation of the master key did.
type Rotated struct {
	From    string `json:"from"` // the ids of the keys
	To      string `json:"to"`
	Secrets int    `json:"secrets"` // sealed anew
	Keys    int    `json:"signing_keys"`
	Own     bool   `json:"own"` // the old key was deleted: this program keeps them
}

// RotateMaster seals everything with another master key, in one transaction. Where this
// program keeps the keys it makes the new one, keeps both until the commit is known,
// and then deletes the old one; killed at any point it leaves a store whose key is at
// hand. Elsewhere the new key is the first of those at hand.
func (v *Vault) RotateMaster(ctx context.Context) (Rotated, error) {
	var done Rotated
	v.mu.Lock()
	next, err := v.successor(ctx)
	v.mu.Unlock()
	if err != nil {
		return done, err
	}
	err = v.change(ctx, func(now time.Time, c *Contents) error {
		old, err := v.needed(c.Master)
		if err != nil {
			return err
		}
		done = Rotated{From: old.ID(), To: next.ID(), Secrets: len(c.Secrets), Keys: len(c.SigningKeys), Own: v.o.Own != ""}
		return reseal(c, now, old, next)
	})
	if err != nil {
		return done, err
	}
	if v.o.Own != "" {
		return done, v.o.Own.Write(seal.Ring{next})
	}
	return done, nil
}

// successor is the next master key, which is at hand when this returns.
func (v *Vault) successor(ctx context.Context) (seal.Key, error) {
	c, err := v.o.Store.Vault(ctx)
	if err != nil {
		return seal.Key{}, err
	}
	if v.unneeded(c) {
		return seal.Key{}, fault.Wrap(fault.Conflict, errNothingSealed)
	}
	old, err := v.needed(c.Master)
	if err != nil {
		return seal.Key{}, err
	}
	if v.o.Own != "" {
		next := seal.NewKey()
		v.o.Hide(next.Text())
		return next, v.o.Own.Write(seal.Ring{next, old})
	}
	r, err := v.ring()
	if err != nil {
		return seal.Key{}, err
	}
	if r[0].ID() == old.ID() {
		return seal.Key{}, fault.Errorf(fault.Conflict, "%s has no other key in front of the one in use, %s: write a new one (leasehold keys new-master) as its first line and keep the old one below, on every node; then try again", v.o.Where, old.ID())
	}
	return r[0], nil
}

// reseal seals all of c with next. The contents keep their times.
func reseal(c *Contents, now time.Time, old, next seal.Key) error {
	for i, s := range c.Secrets {
		value, err := old.Open(s.owner(), s.Sealed)
		if err != nil {
			return fault.Wrap(fault.Corrupt, err)
		}
		c.Secrets[i].Sealed = next.Seal(s.owner(), value)
	}
	for i, k := range c.SigningKeys {
		value, err := old.Open(k.owner(), k.Sealed)
		if err != nil {
			return fault.Wrap(fault.Corrupt, err)
		}
		c.SigningKeys[i].Sealed = next.Seal(k.owner(), value)
	}
	c.FollowUpKeys = resealFollowUpKeys(c.FollowUpKeys, now, old, next)
	c.Master = masterOf(next)
	return nil
}

// Tidy leaves only the key in use in the file that this program keeps, and none beside
// it: a rotation that was killed leaves two, or a copy. Nothing is sealed: the file is not
// touched.
func (v *Vault) Tidy() error {
	if v.o.Own == "" {
		return nil
	}
	v.o.Own.Tidy()
	o := v.open.Load()
	if o == nil || o.contents.Master.ID == "" {
		return nil
	}
	r, err := v.o.Own.Read()
	if err != nil || len(r) < 2 {
		return err
	}
	key, ok := r.Find(o.contents.Master.ID)
	if !ok {
		return nil // the one in use came from elsewhere
	}
	return v.o.Own.Write(seal.Ring{key})
}

// MasterKey is the key in use, for whoever packs it up. fault.Conflict: nothing that
// anybody would miss is sealed, so none is needed.
func (v *Vault) MasterKey(ctx context.Context) (seal.Key, error) {
	c, err := v.o.Store.Vault(ctx)
	if err != nil {
		return seal.Key{}, err
	}
	if !c.needsMaster() {
		return seal.Key{}, fault.Wrap(fault.Conflict, errNothingSealed)
	}
	return v.needed(c.Master)
}
