package vault_test

import (
	"os"
	"strings"
	"testing"

	"leasehold/internal/fault"
	"leasehold/internal/seal"
	"leasehold/internal/vault"
)

const address = "https://platform.example/planted"

// opens compares what the sealed address of an event opens as.
func (b *box) opens(v *vault.Vault, event string, sealed []byte) {
	b.Helper()
	got, err := v.OpenFollowUp(b.Context(), "acme", event, sealed)
	if err != nil || got != address {
		b.Errorf("address of %s: got %q, %v, want %q", event, got, err, address)
	}
}

func (b *box) seals(v *vault.Vault, event string) []byte {
	b.Helper()
	sealed, err := v.SealFollowUp(b.Context(), "acme", event, address)
	b.must(err)
	return sealed
}

func TestFollowUps(t *testing.T) {
	t.Run("the first address makes the keys, and opens after a restart, as its event's only", func(t *testing.T) {
		b := newBox(t)
		v := b.ready()
		sealed := b.seals(v, "1")
		if strings.Contains(string(sealed), "planted") {
			t.Error("got the address in what is sealed, want it hidden")
		}
		b.opens(v, "1", sealed)
		b.opens(b.ready(), "1", sealed)
		b.opens(b.open(), "1", sealed) // before its first refresh, too
		if got, err := v.OpenFollowUp(t.Context(), "acme", "2", sealed); err == nil {
			t.Errorf("got %q for another event, want an error", got)
		}
		if got, err := v.OpenFollowUp(t.Context(), "other", "1", sealed); err == nil {
			t.Errorf("got %q for another installation, want an error", got)
		}
	})

	t.Run("nodes that share a store open what each other has sealed", func(t *testing.T) {
		b := newBox(t)
		key := seal.NewKey()
		given := func(o *vault.Options) {
			o.Own, o.Shared, o.Keys = "", true, func() (seal.Ring, error) { return seal.Ring{key}, nil }
		}
		first, second := b.ready(given), b.ready(given)
		b.opens(second, "1", b.seals(first, "1"))
		b.opens(first, "2", b.seals(second, "2"))
		c, err := b.store.Vault(t.Context())
		b.must(err)
		b.want("keys", len(c.FollowUpKeys), 1)
	})

	t.Run("a rotated master key leaves addresses readable, and the old one opens no key", func(t *testing.T) {
		b := newBox(t)
		v, other := b.ready(), b.ready(func(o *vault.Options) { o.Shared = true })
		before := b.seals(v, "1")
		b.opens(other, "1", before)
		old, err := b.file().Read()
		b.must(err)
		_, err = v.RotateMaster(t.Context())
		b.must(err)
		after := b.seals(v, "2")
		b.want("another key seals", seal.KeyID(after) != seal.KeyID(before), true)
		for _, v := range []*vault.Vault{v, b.ready(), other} {
			b.opens(v, "1", before)
			b.opens(v, "2", after)
		}
		c, err := b.store.Vault(t.Context())
		b.must(err)
		b.want("keys", len(c.FollowUpKeys), 2)
		for _, k := range c.FollowUpKeys {
			if _, err := old[0].Open(seal.Owner{Kind: "follow-up key", Name: k.ID}, k.Sealed); err == nil {
				t.Errorf("got key %s open with the old master key, want it refused", k.ID)
			}
		}
		_, err = v.RotateMaster(t.Context())
		b.must(err)
		b.opens(v, "2", after)
		if got, err := v.OpenFollowUp(t.Context(), "acme", "1", before); err == nil {
			t.Errorf("got %q after two rotations, want its key gone", got)
		}
	})

	t.Run("without a master key none is sealed, and the error says how there comes to be one", func(t *testing.T) {
		b := newBox(t)
		v := b.ready(func(o *vault.Options) {
			o.Own, o.Shared, o.Keys = "", true, func() (seal.Ring, error) { return nil, nil }
		})
		for range 2 { // the second is not tried again
			_, err := v.SealFollowUp(t.Context(), "acme", "1", address)
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "leasehold keys new-master") {
				t.Errorf("got %v, want how to make one", err)
			}
		}
	})

	t.Run("a lost master key that sealed nothing else is missed by nobody", func(t *testing.T) {
		b := newBox(t)
		before := b.seals(b.ready(), "1")
		b.must(os.Remove(string(b.file())))
		v := b.ready()
		if _, err := v.OpenFollowUp(t.Context(), "acme", "1", before); err == nil {
			t.Error("got it open without its key, want an error")
		}
		b.opens(v, "2", b.seals(v, "2"))
		b.must(os.Remove(string(b.file())))
		b.must(b.ready().SetSecret(t.Context(), "acme", "hunter2-value"))
		b.secret(b.ready(), "acme", "hunter2-value")
	})

	t.Run("a secret that comes and goes takes no address with it", func(t *testing.T) {
		b := newBox(t)
		v := b.ready()
		sealed := b.seals(v, "1")
		b.must(v.SetSecret(t.Context(), "acme", "hunter2-value"))
		b.must(v.RemoveSecret(t.Context(), "acme"))
		b.opens(b.ready(), "1", sealed)
		_, err := v.MasterKey(t.Context())
		b.want("a key that a backup needs", fault.Of(err), fault.Conflict)
	})
}
