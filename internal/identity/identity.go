// Package identity keeps who this node is, over restarts.
//
// The file instance.json in the data folder holds the node's random id, its
// last session, and the store that belongs to the folder. Whoever writes it
// holds the folder's lock (on SQLite, the database's). It is written whole or
// not at all, 0600, and only when something changed: once per start.
//
// It is a memory, no proof: a copied folder has the same id, which is what the
// store refuses when both run.
package identity

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"leasehold/internal/durable"
	"leasehold/internal/fault"
)

const fileName = "instance.json"

// Identity is what the folder remembers.
type Identity struct {
	Instance string `json:"instance_id"`          // random, made once
	Previous string `json:"session_id,omitempty"` // the last session opened under it; "" = none
	Store    string `json:"store_id,omitempty"`   // the store that belongs to the folder; "" = none yet
	Version  string `json:"version,omitempty"`    // of the program that opened Previous; "" = not known
	// Key keys the fingerprints of configs, in which secrets take part. It is
	// random and stands in no database: who has a copy of the store alone cannot try
	// passwords against what it holds.
	Key string `json:"fingerprint_key"`
	// SharedKey takes its place where several nodes share Store: they must agree on what
	// has changed, so the store holds it. "" = Store is this node's alone.
	SharedKey string `json:"shared_key,omitempty"`

	dir string
}

// Load reads the identity kept in dir, or makes a new one, which is on the disk
// only after the first SetSession or SetStore. A file that cannot be read as one
// of ours is fault.Invalid: an identity is not replaced in silence.
func Load(dir string) (*Identity, error) {
	id := &Identity{dir: dir}
	b, err := os.ReadFile(id.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		id.Instance, id.Key = newID(), newID()
		return id, nil
	case err != nil:
		return nil, fault.Errorf(fault.ReadOnly, "read the node's identity: %w; check the owner of %s", err, dir)
	}
	if err := json.Unmarshal(b, id); err != nil || id.Instance == "" || id.Key == "" {
		return nil, fault.Errorf(fault.Invalid, "%s does not hold an identity: restore it, or remove it to begin with a new one", id.path())
	}
	return id, nil
}

// SetSession remembers the session that is about to be opened, and the version of the
// program that opens it, so that the next start knows which session of its own is
// dead and whether it is an upgrade. It is on the disk when it returns.
func (id *Identity) SetSession(session, version string) error {
	next := *id
	next.Previous, next.Version = session, version
	return id.replace(next)
}

// SetStore remembers the store that belongs to the folder, and the key that nodes
// which share it have in common; "" = nobody shares it. It is on the disk when it
// returns.
func (id *Identity) SetStore(store, sharedKey string) error {
	next := *id
	next.Store, next.SharedKey = store, sharedKey
	return id.replace(next)
}

// FingerprintKey keys the fingerprints of what is in the store.
func (id *Identity) FingerprintKey() []byte { return []byte(cmp.Or(id.SharedKey, id.Key)) }

func (id *Identity) path() string { return filepath.Join(id.dir, fileName) }

// replace writes next unless it is what the file holds already.
func (id *Identity) replace(next Identity) error {
	b, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("write %s: %w", id.path(), err)
	}
	b = append(b, '\n')
	if old, err := os.ReadFile(id.path()); err == nil && string(old) == string(b) {
		*id = next
		return nil
	}
	if err := writeFile(id.path(), b); err != nil {
		return fault.Errorf(fault.ReadOnly, "write the node's identity: %w; check the owner of %s and the space under it", err, id.dir)
	}
	*id = next
	return nil
}

// writeFile replaces the file at path so that a crash leaves the old content or
// the new one.
func writeFile(path string, b []byte) (err error) {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp))
		}
	}()
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(tmp, path); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}
