// Package vault keeps the secrets that people set and the keys that sign what targets
// get: sealed in the store, open in memory.
//
// What is in force is one snapshot, which a Refresh replaces as a whole or not at all:
// while the store does not answer, or the master key is not at hand, the last good one
// stays. A change is durable when its call returns, and in force in this process; other
// processes of a shared store see it when they refresh.
//
// The vault gives values to whoever calls it in this process and shows none: nothing
// that it lists has a value in it.
package vault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"leasehold/internal/fault"
	"leasehold/internal/seal"
)

// Store is what the vault asks of a database.
type Store interface {
	// Vault reads all of it, as of one moment.
	Vault(ctx context.Context) (Contents, error)
	// VaultVersion is that of the contents; it grows with each change. It costs one row.
	VaultVersion(ctx context.Context) (int64, error)
	// ChangeVault reads the contents, has f change them, and stores the result, as one
	// transaction that no other change interleaves with. f may be called again, and does
	// nothing else. now is the store's clock. An error of f is returned and nothing is
	// stored; the same contents are not stored again.
	ChangeVault(ctx context.Context, f func(now time.Time, c *Contents) error) error
}

// Options are what a Vault is made with.
type Options struct {
	Store Store
	// Keys reads the master keys that are at hand, each time it is called.
	Keys func() (seal.Ring, error)
	// Own is the file of the keys where this program makes and keeps them; "" = somebody
	// else does, and Keys is all there is.
	Own seal.File
	// Where says where Keys looks, for people.
	Where string
	// Shared: other processes change the store, too.
	Shared bool
	// Hide is told of each value, so that it shows nowhere. nil = nobody is.
	Hide func(value string)
}

// Vault is safe for concurrent use.
type Vault struct {
	o    Options
	mu   sync.Mutex // one refresh or change at a time
	open atomic.Pointer[opened]

	unmade followUpFault // why there is no key for follow-up addresses
}

// opened is a snapshot: what was in the store, and the values. It is fixed.
type opened struct {
	contents Contents
	secrets  map[string]string
	keys     map[string][]string // by target, in the order in which they were made
	followUp seal.Ring           // the newest first, which seals; none: there is none, or its master key is lost
}

// New makes a Vault that knows nothing before its first Refresh.
func New(o Options) *Vault {
	if o.Hide == nil {
		o.Hide = func(string) {}
	}
	return &Vault{o: o}
}

// lookWithin bounds a look at a shared store by who wants a value: a connection waits
// for it.
const lookWithin = 3 * time.Second

// Secret is the value of a secret. The error says what to type where there is none.
// In a shared store it looks whether somebody has changed it.
func (v *Vault) Secret(name string) (string, error) {
	if v.o.Shared || v.open.Load() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), lookWithin)
		defer cancel()
		if _, err := v.Refresh(ctx); err != nil && v.open.Load() == nil {
			return "", fmt.Errorf("secret %s: %w", name, err)
		}
	}
	value, ok := v.open.Load().secrets[name]
	if !ok {
		return "", fmt.Errorf("secret %s is not set; run leasehold secrets set %s", name, name)
	}
	return value, nil
}

// SigningKeys are the active keys of a target, in the order in which they were made.
func (v *Vault) SigningKeys(target string) []string {
	if o := v.open.Load(); o != nil {
		return o.keys[target]
	}
	return nil
}

// Refresh takes up what the store holds now and reports whether that is something
// else. With an error what was in force stays. fault.Invalid: the master key that it
// takes is not at hand; the text names it.
func (v *Vault) Refresh(ctx context.Context) (changed bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.refresh(ctx)
}

func (v *Vault) refresh(ctx context.Context) (bool, error) {
	if was := v.open.Load(); was != nil {
		version, err := v.o.Store.VaultVersion(ctx)
		if err != nil || version == was.contents.Version {
			return false, err
		}
	}
	c, err := v.o.Store.Vault(ctx)
	if err != nil {
		return false, err
	}
	next, err := v.unseal(c)
	if err != nil {
		return false, err
	}
	v.open.Store(next)
	return true, nil
}

// unseal opens all of the contents.
func (v *Vault) unseal(c Contents) (*opened, error) {
	next := &opened{contents: c, secrets: map[string]string{}, keys: map[string][]string{}}
	if c.Master.ID == "" {
		return next, nil
	}
	key, err := v.needed(c.Master)
	switch {
	case err != nil && !c.needsMaster():
		return next, nil // another one is made when it is needed
	case err != nil:
		return nil, err
	}
	next.followUp = v.openFollowUpKeys(c, key)
	for _, s := range c.Secrets {
		value, err := key.Open(s.owner(), s.Sealed)
		if err != nil {
			return nil, fault.Errorf(fault.Corrupt, "%w; set it again: leasehold secrets set %s", err, s.Name)
		}
		next.secrets[s.Name] = string(value)
		v.o.Hide(string(value))
	}
	byAge := slices.SortedStableFunc(slices.Values(c.SigningKeys), func(a, b SigningKey) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for _, k := range byAge {
		value, err := key.Open(k.owner(), k.Sealed)
		if err != nil {
			return nil, fault.Errorf(fault.Corrupt, "%w; make another one: leasehold keys create --target %s", err, k.Target)
		}
		v.hideKey(string(value))
		if k.RetiredAt.IsZero() {
			next.keys[k.Target] = append(next.keys[k.Target], string(value))
		}
	}
	return next, nil
}

func (v *Vault) hideKey(value string) {
	v.o.Hide(value)
	_, bare, _ := strings.Cut(value, "_") // the receiver's library may want it, and show it, without its prefix
	v.o.Hide(bare)
}

// ring is the master keys at hand.
func (v *Vault) ring() (seal.Ring, error) {
	r, err := v.o.Keys()
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err)
	}
	for _, k := range r {
		v.o.Hide(k.Text())
	}
	return r, nil
}

// needed is the key that the store names.
func (v *Vault) needed(m Master) (seal.Key, error) {
	r, err := v.ring()
	if err != nil {
		return seal.Key{}, err
	}
	key, ok := r.Find(m.ID)
	if !ok {
		return seal.Key{}, v.missing(m.ID, r)
	}
	if _, err := key.Open(proofOwner, m.Proof); err != nil {
		return seal.Key{}, fault.Errorf(fault.Corrupt, "%w; restore a backup", err)
	}
	return key, nil
}

// unneeded reports whether no master key is in use, or one is lost that nobody misses.
func (v *Vault) unneeded(c Contents) bool {
	if c.Master.ID == "" || c.needsMaster() {
		return c.Master.ID == ""
	}
	_, err := v.needed(c.Master)
	return err != nil
}

func (v *Vault) missing(id string, r seal.Ring) error {
	holds := "there is none in " + v.o.Where
	if len(r) > 0 {
		holds = fmt.Sprintf("%s holds %s", v.o.Where, strings.Join(r.IDs(), " and "))
	}
	return fault.Errorf(fault.Invalid, "what the store keeps sealed needs master key %s, and %s; put that key there, or remove what it sealed: leasehold secrets list, leasehold keys list", id, holds)
}

// sealing is the key to seal with: the one in use or, where nothing is sealed yet, the
// first at hand. Where this program keeps them it makes one, which is on the disk
// before anything is sealed with it.
func (v *Vault) sealing(c *Contents) (seal.Key, error) {
	if !v.unneeded(*c) {
		return v.needed(c.Master)
	}
	c.Master, c.FollowUpKeys = Master{}, nil
	r, err := v.ring()
	if err != nil {
		return seal.Key{}, err
	}
	switch {
	case len(r) > 0:
	case v.o.Own == "":
		return seal.Key{}, fault.Errorf(fault.Invalid, "a store that several nodes share needs a master key that all of them have: keep the output of leasehold keys new-master in a file of mode 0600, give it to each node, and set store.master_key = { file = \"PATH\" }")
	default:
		r = seal.Ring{seal.NewKey()}
		if err := v.o.Own.Write(r); err != nil {
			return seal.Key{}, err
		}
		v.o.Hide(r[0].Text())
	}
	c.Master = masterOf(r[0])
	return r[0], nil
}

// change makes a change and takes it up. f gets the key to seal with when it asks for it.
func (v *Vault) change(ctx context.Context, f func(now time.Time, c *Contents) error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	err := v.o.Store.ChangeVault(ctx, func(now time.Time, c *Contents) error {
		if err := f(now, c); err != nil {
			return err
		}
		if len(c.FollowUpKeys) == 0 && !c.needsMaster() || v.unneeded(*c) {
			c.Master, c.FollowUpKeys = Master{}, nil // nothing needs a key any more, so none can be missed
		}
		return nil
	})
	if err != nil {
		return err
	}
	// It is stored. What keeps it from being in force is told where it is missed.
	if _, err := v.refresh(ctx); err != nil && !fault.Is(err, fault.Invalid) {
		return fmt.Errorf("it is stored, and not in force yet: %w", err)
	}
	return nil
}

// Secrets lists the secrets by name, without values. It needs no key.
func (v *Vault) Secrets(ctx context.Context) ([]Secret, error) {
	c, err := v.o.Store.Vault(ctx)
	return c.Secrets, err
}

// ListKeys lists the signing keys, retired ones too, without values. It needs no key.
func (v *Vault) ListKeys(ctx context.Context) ([]SigningKey, error) {
	c, err := v.o.Store.Vault(ctx)
	return c.SigningKeys, err
}

// SetSecret gives a secret a value. fault.Invalid: the name, the value, or that no
// master key is at hand.
func (v *Vault) SetSecret(ctx context.Context, name, value string) error {
	if err := checkSecret(name, value); err != nil {
		return err
	}
	v.o.Hide(value)
	return v.change(ctx, func(now time.Time, c *Contents) error {
		key, err := v.sealing(c)
		if err != nil {
			return err
		}
		s := Secret{Name: name, UpdatedAt: now}
		s.Sealed = key.Seal(s.owner(), []byte(value))
		c.Secrets = append(slices.DeleteFunc(c.Secrets, func(o Secret) bool { return o.Name == name }), s)
		return nil
	})
}

// RemoveSecret removes a secret. It needs no key. fault.NotFound: there is none.
func (v *Vault) RemoveSecret(ctx context.Context, name string) error {
	return v.change(ctx, func(_ time.Time, c *Contents) error {
		n := len(c.Secrets)
		c.Secrets = slices.DeleteFunc(c.Secrets, func(o Secret) bool { return o.Name == name })
		if len(c.Secrets) == n {
			return fault.Errorf(fault.NotFound, "there is no secret %s; see leasehold secrets list", name)
		}
		return nil
	})
}

// errNothingSealed: there is nothing that a master key is in use for.
var errNothingSealed = errors.New("nothing is sealed, so no master key is in use; the first secret or signing key takes one into use")
