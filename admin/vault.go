package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"leasehold/channel"
	"leasehold/delivery"
	"leasehold/internal/fault"
	"leasehold/internal/vault"
)

// Vault keeps secrets and signing keys. *vault.Vault is one; what it promises stands
// there.
type Vault interface {
	Secrets(ctx context.Context) ([]vault.Secret, error)
	SetSecret(ctx context.Context, name, value string) error
	RemoveSecret(ctx context.Context, name string) error
	ListKeys(ctx context.Context) ([]vault.SigningKey, error)
	AddKey(ctx context.Context, target, value string) (vault.SigningKey, error)
	RetireKey(ctx context.Context, id string) (vault.SigningKey, error)
	RemoveKey(ctx context.Context, id string) error
	RotateMaster(ctx context.Context) (vault.Rotated, error)
}

// SecretValue is what a secret is set to. No answer has one.
type SecretValue struct {
	Value string `json:"value"`
}

// SecretSet is a secret that was set, and the installations that connect again for it.
type SecretSet struct {
	Name    string   `json:"name"`
	Changed []string `json:"changed"`
}

// KeyOrder asks for a signing key.
type KeyOrder struct {
	Target string `json:"target"`
}

// NewKey is a signing key that was made. Its value is in this answer and in no other.
type NewKey struct {
	vault.SigningKey
	Key string `json:"key"`
}

func (a *API) vault() (Vault, error) {
	if a.o.Vault == nil {
		return nil, fault.Wrap(fault.Temporary, errNotRunning)
	}
	return a.o.Vault, nil
}

// listed answers with a list of the vault.
func listed[T any](a *API, w http.ResponseWriter, r *http.Request, list func(Vault, context.Context) ([]T, error)) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	v, err := a.vault()
	if err != nil {
		return err
	}
	all, err := list(v, r.Context())
	if err != nil {
		return err
	}
	return a.answer(w, http.StatusOK, Page[T]{Items: append([]T{}, all...)})
}

func (a *API) listSecrets(w http.ResponseWriter, r *http.Request) error {
	return listed(a, w, r, Vault.Secrets)
}

func (a *API) listKeys(w http.ResponseWriter, r *http.Request) error {
	return listed(a, w, r, Vault.ListKeys)
}

func (a *API) setSecret(w http.ResponseWriter, r *http.Request) error {
	v, err := a.vault()
	if err != nil {
		return err
	}
	var in SecretValue
	if err := read(w, r, &in); err != nil {
		return err
	}
	name := r.PathValue("name")
	if err := v.SetSecret(r.Context(), name, in.Value); err != nil {
		return err
	}
	return a.answer(w, http.StatusOK, SecretSet{Name: name, Changed: a.takeUp(r.Context(), name)})
}

func (a *API) removeSecret(w http.ResponseWriter, r *http.Request) error {
	v, err := a.vault()
	if err != nil {
		return err
	}
	if err := v.RemoveSecret(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	a.takeUp(r.Context(), r.PathValue("name"))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// takeUp has the installations connect again that refer to a secret, and no other.
func (a *API) takeUp(ctx context.Context, secret string) []string {
	changed := Reseal(ctx, a.o.Store, a.o.Types, a.o.FingerprintKey, func(i Installation) bool { return refers(i.Config, secret) }, a.o.Log)
	if len(changed) > 0 {
		a.changed()
	}
	return append([]string{}, changed...)
}

// Reseal makes the stored fingerprints those that the secrets have now, of the
// installations that which picks: whoever holds one connects again. It returns their
// ids. One that somebody changes meanwhile is left as it is; one that lacks something
// keeps its row and is blocked with the reason.
func Reseal(ctx context.Context, s Store, types *channel.Types, key []byte, which func(Installation) bool, log *slog.Logger) (changed []string) {
	rows, err := s.Installations(ctx)
	if err != nil {
		log.WarnContext(ctx, "secrets of installations not compared", "error", err)
		return nil
	}
	for _, row := range rows {
		was := row.Fingerprint
		if !which(row) {
			continue
		}
		if _ = Seal(types, key, &row); row.Fingerprint == was { // what it lacks its holder says
			continue
		}
		if _, err := s.PutInstallation(ctx, row, row.Revision); err != nil {
			log.WarnContext(ctx, "changed secret of an installation not taken up", "installation", row.ID, "error", err)
			continue
		}
		changed = append(changed, row.ID)
	}
	return changed
}

// refers reports whether a config refers to a secret of the store.
func refers(config json.RawMessage, secret string) bool {
	var tree any
	if json.Unmarshal(config, &tree) != nil {
		return false
	}
	var in func(any) bool
	in = func(v any) bool {
		switch v := v.(type) {
		case []any:
			return slices.ContainsFunc(v, in)
		case map[string]any:
			if name, ok := v["secret"].(string); ok && name == secret && len(v) == 1 {
				return true
			}
			for _, item := range v {
				if in(item) {
					return true
				}
			}
		}
		return false
	}
	return in(tree)
}

func (a *API) createKey(w http.ResponseWriter, r *http.Request) error {
	v, err := a.vault()
	if err != nil {
		return err
	}
	var in KeyOrder
	if err := read(w, r, &in); err != nil {
		return err
	}
	if names := a.targetNames(); names != nil && !slices.Contains(names, in.Target) {
		return fault.Errorf(fault.Invalid, "there is no target %q; there are: %s", in.Target, strings.Join(names, ", "))
	}
	value := delivery.NewSigningKey()
	k, err := v.AddKey(r.Context(), in.Target, value)
	if err != nil {
		return err
	}
	return a.answerOnce(w, NewKey{k, value})
}

// targetNames are the configured targets; nil: they are not known here.
func (a *API) targetNames() []string {
	if a.o.TargetNames == nil {
		return nil
	}
	return append([]string{}, a.o.TargetNames()...)
}

func (a *API) retireKey(w http.ResponseWriter, r *http.Request) error {
	v, err := a.vault()
	if err != nil {
		return err
	}
	k, err := v.RetireKey(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return a.answer(w, http.StatusOK, k)
}

func (a *API) removeKey(w http.ResponseWriter, r *http.Request) error {
	v, err := a.vault()
	if err != nil {
		return err
	}
	if err := v.RemoveKey(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) rotateMaster(w http.ResponseWriter, r *http.Request) error {
	v, err := a.vault()
	if err != nil {
		return err
	}
	done, err := v.RotateMaster(r.Context())
	if err != nil {
		return fmt.Errorf("rotate the master key: %w", err)
	}
	return a.answer(w, http.StatusOK, done)
}
