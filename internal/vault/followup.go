package vault

import (
	"context"
	"slices"
	"sync"
	"time"

	"leasehold/internal/fault"
	"leasehold/internal/seal"
)

// Follow-up addresses come with events and are good for minutes. They are not sealed
// with the master key but with a key of their own, which the master key seals: so a
// rotation seals one row anew and not each address, and no event waits for it. The
// rotation makes a new one besides; the one before it opens what it has sealed.

const (
	// followUpKeys is how many are kept: an address is gone before the key is.
	followUpKeys = 2
	// unmadeFor is how long nobody tries again to make a key: events would wait for it.
	unmadeFor = time.Minute
	// makeWithin bounds the making of one, which an event waits for.
	makeWithin = 3 * time.Second
)

// followUpFault is why no key could be made, for a while.
type followUpFault struct {
	mu    sync.Mutex // guards what follows
	err   error
	until time.Time
}

// SealFollowUp seals the follow-up address of an event. The first one makes a key for
// them, which is on the disk when it returns, and with it a master key where this
// program keeps them. fault.Invalid: there is no master key.
func (v *Vault) SealFollowUp(ctx context.Context, installation, event, address string) ([]byte, error) {
	key, err := v.followUpKey(ctx)
	if err != nil {
		return nil, err
	}
	return key.Seal(followUpOwner(installation, event), []byte(address)), nil
}

// OpenFollowUp is the address that was sealed for an event. In a shared store it looks
// for the key of another node. fault.Invalid: the key is not at hand.
func (v *Vault) OpenFollowUp(ctx context.Context, installation, event string, sealed []byte) (string, error) {
	key, ok := v.findFollowUpKey(seal.KeyID(sealed))
	if !ok {
		limited, cancel := context.WithTimeout(ctx, makeWithin)
		defer cancel()
		if _, err := v.Refresh(limited); err != nil {
			return "", err
		}
		if key, ok = v.findFollowUpKey(seal.KeyID(sealed)); !ok {
			return "", fault.Errorf(fault.Invalid, "the key of the follow-up address is not in the store any more")
		}
	}
	address, err := key.Open(followUpOwner(installation, event), sealed)
	return string(address), err
}

func followUpOwner(installation, event string) seal.Owner {
	return seal.Owner{Kind: "follow-up address of " + installation, Name: event}
}

func (v *Vault) findFollowUpKey(id string) (seal.Key, bool) {
	if o := v.open.Load(); o != nil {
		return o.followUp.Find(id)
	}
	return seal.Key{}, false
}

// followUpKey is the key that seals.
func (v *Vault) followUpKey(ctx context.Context) (seal.Key, error) {
	if o := v.open.Load(); o != nil && len(o.followUp) > 0 {
		return o.followUp[0], nil
	}
	f := &v.unmade
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Now().Before(f.until) {
		return seal.Key{}, f.err
	}
	limited, cancel := context.WithTimeout(ctx, makeWithin)
	defer cancel()
	if err := v.makeFollowUpKey(limited); err != nil {
		f.err, f.until = err, time.Now().Add(unmadeFor)
		return seal.Key{}, err
	}
	if o := v.open.Load(); o != nil && len(o.followUp) > 0 {
		return o.followUp[0], nil
	}
	return seal.Key{}, fault.Errorf(fault.Invalid, "the key of follow-up addresses is not at hand; see leasehold doctor")
}

// makeFollowUpKey makes the first key, unless another node was faster.
func (v *Vault) makeFollowUpKey(ctx context.Context) error {
	return v.change(ctx, func(now time.Time, c *Contents) error {
		master, err := v.sealing(c)
		if err != nil || len(v.openFollowUpKeys(*c, master)) > 0 {
			return err
		}
		c.FollowUpKeys = []FollowUpKey{newFollowUpKey(now, master)}
		return nil
	})
}

func newFollowUpKey(now time.Time, master seal.Key) FollowUpKey {
	key := seal.NewKey()
	k := FollowUpKey{ID: key.ID(), CreatedAt: now}
	k.Sealed = master.Seal(k.owner(), []byte(key.Text()))
	return k
}

// openFollowUpKeys opens those that can be opened, the newest first. One that cannot
// is missed for minutes, and keeps nothing else from being opened.
func (v *Vault) openFollowUpKeys(c Contents, master seal.Key) (r seal.Ring) {
	for _, k := range newestFirst(c.FollowUpKeys) {
		text, err := master.Open(k.owner(), k.Sealed)
		if err != nil {
			continue
		}
		if key, err := seal.ParseKey(string(text)); err == nil {
			v.o.Hide(key.Text())
			r = append(r, key)
		}
	}
	return r
}

// resealFollowUpKeys seals what there is with another master key, behind a new one.
func resealFollowUpKeys(keys []FollowUpKey, now time.Time, old, next seal.Key) []FollowUpKey {
	if len(keys) == 0 {
		return nil
	}
	keys = newestFirst(keys)
	if !now.After(keys[0].CreatedAt) {
		now = keys[0].CreatedAt.Add(time.Millisecond) // a clock that was set back makes no key older
	}
	kept := []FollowUpKey{newFollowUpKey(now, next)}
	for _, k := range keys {
		if text, err := old.Open(k.owner(), k.Sealed); err == nil && len(kept) < followUpKeys {
			k.Sealed = next.Seal(k.owner(), text)
			kept = append(kept, k)
		}
	}
	return kept
}

func newestFirst(keys []FollowUpKey) []FollowUpKey {
	return slices.SortedStableFunc(slices.Values(keys), func(a, b FollowUpKey) int { return b.CreatedAt.Compare(a.CreatedAt) })
}
