package vault_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"leasehold/internal/fault"
	"leasehold/internal/seal"
	"leasehold/internal/vault"
	"leasehold/store/sqlite"
)

// box is a real store with its master key beside it.
type box struct {
	*testing.T
	dir    string
	store  *sqlite.Store
	hidden []string
}

func newBox(t *testing.T) *box {
	t.Helper()
	b := &box{T: t, dir: t.TempDir()}
	s, err := sqlite.Open(t.Context(), filepath.Join(b.dir, "leasehold.db"), sqlite.Options{ReserveBytes: -1})
	b.must(err)
	b.store = s
	t.Cleanup(func() { b.must(s.Close()) })
	return b
}

func (b *box) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *box) file() seal.File { return seal.File(filepath.Join(b.dir, "master.key")) }

// open is the vault as the next start opens it; o changes its options.
func (b *box) open(change ...func(*vault.Options)) *vault.Vault {
	o := vault.Options{Store: b.store, Keys: b.file().Read, Own: b.file(), Where: "master.key", Hide: func(v string) { b.hidden = append(b.hidden, v) }}
	for _, c := range change {
		c(&o)
	}
	return vault.New(o)
}

// ready is open, refreshed.
func (b *box) ready(change ...func(*vault.Options)) *vault.Vault {
	b.Helper()
	v := b.open(change...)
	_, err := v.Refresh(b.Context())
	b.must(err)
	return v
}

func (b *box) want(what string, got, wanted any) {
	b.Helper()
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		b.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

func (b *box) secret(v *vault.Vault, name, wanted string) {
	b.Helper()
	got, err := v.Secret(name)
	if err != nil || got != wanted {
		b.Errorf("secret %s: got %q, %v, want %q", name, got, err, wanted)
	}
}

const signing = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"

func TestSecrets(t *testing.T) {
	t.Run("a secret is there at once, after a restart, and no more once it is removed", func(t *testing.T) {
		b := newBox(t)
		v := b.ready()
		b.must(v.SetSecret(t.Context(), "acme", "hunter2-one"))
		b.must(v.SetSecret(t.Context(), "zeta", "hunter2-zeta"))
		b.must(v.SetSecret(t.Context(), "acme", "hunter2-two"))
		b.secret(v, "acme", "hunter2-two")
		b.secret(b.ready(), "acme", "hunter2-two")
		b.secret(b.open(), "zeta", "hunter2-zeta") // before its first refresh, too
		listed, err := v.Secrets(t.Context())
		b.must(err)
		b.want("names", fmt.Sprintf("%d %s %s", len(listed), listed[0].Name, listed[1].Name), "2 acme zeta")
		b.must(v.RemoveSecret(t.Context(), "acme"))
		_, err = v.Secret("acme")
		if err == nil || !strings.Contains(err.Error(), "leasehold secrets set acme") {
			t.Errorf("got %v, want the command that sets it", err)
		}
		b.want("a second removal", fault.Of(v.RemoveSecret(t.Context(), "acme")), fault.NotFound)
	})

	t.Run("nothing on the disk holds a value, and whoever hides values is told of each", func(t *testing.T) {
		b := newBox(t)
		v := b.ready()
		b.must(v.SetSecret(t.Context(), "acme", "hunter2-value"))
		_, err := v.AddKey(t.Context(), "app", signing)
		b.must(err)
		ring, err := b.file().Read()
		b.must(err)
		for _, hidden := range []string{"hunter2-value", signing, strings.TrimPrefix(signing, "whsec_"), ring[0].Text()} {
			if !slices.Contains(b.hidden, hidden) {
				t.Errorf("got %d values hidden, want %q among them", len(b.hidden), hidden)
			}
		}
		entries, err := os.ReadDir(b.dir)
		b.must(err)
		for _, e := range entries {
			content, err := os.ReadFile(filepath.Join(b.dir, e.Name()))
			b.must(err)
			if bytes.Contains(content, []byte("hunter2-value")) || bytes.Contains(content, []byte(signing[6:])) {
				t.Errorf("got a value in %s, want it sealed", e.Name())
			}
		}
	})

	t.Run("a name or a value that cannot be one is refused, and not repeated", func(t *testing.T) {
		b := newBox(t)
		v := b.ready()
		for name, value := range map[string]string{"": "x", "a b": "x", "../x": "x", "empty": "", "large": strings.Repeat("hunter2", 10_000), "bytes": "hunter2\xff"} {
			err := v.SetSecret(t.Context(), name, value)
			if !fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q: got %v, want it invalid", name, err)
			}
		}
	})

	t.Run("a row that is given another name does not open", func(t *testing.T) {
		b := newBox(t)
		v := b.ready()
		b.must(v.SetSecret(t.Context(), "mine", "hunter2-mine"))
		b.must(v.SetSecret(t.Context(), "yours", "hunter2-yours"))
		b.must(b.store.ChangeVault(t.Context(), func(_ time.Time, c *vault.Contents) error {
			c.Secrets[0].Sealed, c.Secrets[1].Sealed = c.Secrets[1].Sealed, c.Secrets[0].Sealed
			return nil
		}))
		_, err := b.open().Refresh(t.Context())
		b.want("kind", fault.Of(err), fault.Corrupt)
		_, err = v.Refresh(t.Context())
		b.want("kind while it runs", fault.Of(err), fault.Corrupt)
		b.secret(v, "mine", "hunter2-mine") // the last good one stays
	})
}

func TestMasterKey(t *testing.T) {
	t.Run("without the key that the store names nothing opens, and the id is told", func(t *testing.T) {
		b := newBox(t)
		b.must(b.ready().SetSecret(t.Context(), "acme", "hunter2-value"))
		ring, err := b.file().Read()
		b.must(err)
		other := seal.NewKey()
		for _, wrong := range []seal.Ring{nil, {other}} {
			v := b.open(func(o *vault.Options) { o.Keys = func() (seal.Ring, error) { return wrong, nil } })
			_, err := v.Refresh(t.Context())
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), ring[0].ID()) {
				t.Errorf("got %v, want it invalid with the id %s", err, ring[0].ID())
			}
			b.want("a write", fault.Of(v.SetSecret(t.Context(), "more", "value")), fault.Invalid)
			listed, err := v.Secrets(t.Context())
			b.must(err)
			b.want("secrets that it lists", len(listed), 1)
		}
		v := b.open(func(o *vault.Options) { o.Keys = func() (seal.Ring, error) { return seal.Ring{other}, nil } })
		b.must(v.RemoveSecret(t.Context(), "acme"))
		b.must(v.SetSecret(t.Context(), "acme", "hunter2-again")) // nothing needed the old key any more
		b.secret(v, "acme", "hunter2-again")
	})

	t.Run("a shared store needs a key that somebody made", func(t *testing.T) {
		b := newBox(t)
		v := b.ready(func(o *vault.Options) {
			o.Own, o.Keys = "", func() (seal.Ring, error) { return nil, nil }
		})
		err := v.SetSecret(t.Context(), "acme", "value")
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "store.master_key") {
			t.Errorf("got %v, want it invalid with the key to set", err)
		}
	})

	t.Run("another process of a shared store sees what was set", func(t *testing.T) {
		b := newBox(t)
		one, two := b.ready(), b.ready(func(o *vault.Options) { o.Shared = true })
		b.must(one.SetSecret(t.Context(), "acme", "hunter2-value"))
		b.secret(two, "acme", "hunter2-value")
		_, err := one.AddKey(t.Context(), "app", signing)
		b.must(err)
		changed, err := two.Refresh(t.Context())
		b.must(err)
		b.want("changed", changed, true)
		b.want("keys", two.SigningKeys("app"), []string{signing})
		changed, err = two.Refresh(t.Context())
		b.must(err)
		b.want("changed again", changed, false)
	})
}

func TestSigningKeys(t *testing.T) {
	b := newBox(t)
	v := b.ready()
	second := "whsec_" + strings.Repeat("B", 32)
	one, err := v.AddKey(t.Context(), "app", signing)
	b.must(err)
	two, err := v.AddKey(t.Context(), "app", second)
	b.must(err)
	_, err = v.AddKey(t.Context(), "a target", signing)
	b.want("a target that cannot be one", fault.Of(err), fault.Invalid)
	b.want("active", slices.Sorted(slices.Values(v.SigningKeys("app"))), slices.Sorted(slices.Values([]string{signing, second})))
	b.want("of another target", len(v.SigningKeys("other")), 0)
	_, err = v.RetireKey(t.Context(), one.ID)
	b.must(err)
	b.want("active after retiring", v.SigningKeys("app"), []string{second})
	_, err = v.RetireKey(t.Context(), one.ID)
	b.want("retired twice", fault.Of(err), fault.Conflict)
	b.must(v.RemoveKey(t.Context(), one.ID))
	b.must(v.RemoveKey(t.Context(), two.ID))
	b.want("removed twice", fault.Of(v.RemoveKey(t.Context(), two.ID)), fault.NotFound)
	b.want("active after removing", len(v.SigningKeys("app")), 0)
}

// broken is a store whose next change fails, before or after it is stored.
type broken struct {
	*sqlite.Store
	after bool
}

var errKilled = errors.New("killed")

func (s broken) ChangeVault(ctx context.Context, f func(time.Time, *vault.Contents) error) error {
	if s.after {
		if err := s.Store.ChangeVault(ctx, f); err != nil {
			return err
		}
	}
	return errKilled
}

func TestRotateMaster(t *testing.T) {
	filled := func(t *testing.T) (*box, seal.Key) {
		b := newBox(t)
		v := b.ready()
		b.must(v.SetSecret(t.Context(), "acme", "hunter2-value"))
		_, err := v.AddKey(t.Context(), "app", signing)
		b.must(err)
		ring, err := b.file().Read()
		b.must(err)
		return b, ring[0]
	}
	readable := func(b *box) {
		b.Helper()
		v := b.ready()
		b.secret(v, "acme", "hunter2-value")
		b.want("keys", v.SigningKeys("app"), []string{signing})
		b.must(v.Tidy())
		ring, err := b.file().Read()
		b.must(err)
		b.want("keys in the file", len(ring), 1)
		b.secret(b.ready(), "acme", "hunter2-value")
	}

	t.Run("everything is readable with the new key, and the old one is refused", func(t *testing.T) {
		b, old := filled(t)
		v := b.ready()
		done, err := v.RotateMaster(t.Context())
		b.must(err)
		b.want("sealed anew", fmt.Sprint(done.Secrets, done.Keys, done.From), fmt.Sprint(1, 1, old.ID()))
		b.secret(v, "acme", "hunter2-value")
		readable(b)
		b.must(b.file().Write(seal.Ring{old}))
		_, err = b.open().Refresh(t.Context())
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), done.To) {
			t.Errorf("got %v, want the old key refused and %s named", err, done.To)
		}
	})

	for name, after := range map[string]bool{"before the commit": false, "after it": true} {
		t.Run("killed "+name+", everything is readable, and the next start leaves one key", func(t *testing.T) {
			b, old := filled(t)
			v := b.open(func(o *vault.Options) { o.Store = broken{b.store, after} })
			if _, err := v.RotateMaster(t.Context()); !errors.Is(err, errKilled) {
				t.Fatalf("got %v, want it killed", err)
			}
			ring, err := b.file().Read()
			b.must(err)
			b.want("keys in the file, the old one last", fmt.Sprint(len(ring), ring[1].ID()), fmt.Sprint(2, old.ID()))
			readable(b)
			ring, err = b.file().Read()
			b.must(err)
			b.want("the old key is kept", ring[0].ID() == old.ID(), !after)
			_, err = b.ready().RotateMaster(t.Context()) // and it can be done again
			b.must(err)
			readable(b)
		})
	}

	t.Run("killed while the file is written, it leaves no copy of a key behind the next start", func(t *testing.T) {
		b, _ := filled(t)
		left := filepath.Join(b.dir, ".master.key.123")
		b.must(os.WriteFile(left, nil, 0o600))
		readable(b)
		if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v of %s, want it gone", err, left)
		}
	})

	t.Run("keys that somebody else keeps are rotated to the first one", func(t *testing.T) {
		b, old := filled(t)
		next := seal.NewKey()
		ring := seal.Ring{old}
		elsewhere := func(o *vault.Options) { o.Own, o.Keys = "", func() (seal.Ring, error) { return ring, nil } }
		v := b.ready(elsewhere)
		_, err := v.RotateMaster(t.Context())
		b.want("with one key", fault.Of(err), fault.Conflict)
		ring = seal.Ring{next, old}
		done, err := v.RotateMaster(t.Context())
		b.must(err)
		b.want("to", done.To, next.ID())
		ring = seal.Ring{next}
		b.secret(b.ready(elsewhere), "acme", "hunter2-value")
	})

	t.Run("where nothing is sealed there is nothing to rotate", func(t *testing.T) {
		_, err := newBox(t).ready().RotateMaster(t.Context())
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("got %v, want a conflict", err)
		}
	})
}
