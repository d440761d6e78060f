package admin

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"leasehold/internal/fault"
)

// Backup is a copy of the store that was made.
type Backup struct {
	Path    string    `json:"path"` // as the process sees it that made it
	Bytes   int64     `json:"bytes"`
	At      time.Time `json:"at"` // what was stored before is in it
	TookMS  int64     `json:"took_ms"`
	Through int64     `json:"through_seq"` // its newest event; 0 = none
	// MasterKey is the id of the key that the secrets and signing keys in it need; "" = it
	// has none. WithKey: that key is in it, too, locked by the passphrase.
	MasterKey string `json:"master_key,omitempty"`
	WithKey   bool   `json:"with_key,omitempty"`
}

// Backups makes copies of the store while it works.
type Backups interface {
	// Backup writes one to path, which must not exist; "" is a dated name in the
	// folder of the backups. With a passphrase the master key is in it, locked by that. It is on the disk and was read as a whole when it
	// returns. fault.Conflict, fault.Full and fault.ReadOnly speak of path.
	Backup(ctx context.Context, path, passphrase string) (Backup, error)
}

// backupOrder is the body that asks for one. Its path is a file of the machine that
// answers, written with the rights of the process there: callers are its owner or
// root, who have those anyway.
type backupOrder struct {
	Path       string `json:"path,omitempty"`
	Passphrase string `json:"passphrase,omitempty"`
}

func (a *API) makeBackup(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	var order backupOrder
	if err := read(w, r, &order); err != nil {
		return err
	}
	switch {
	case order.Path != "" && !filepath.IsAbs(order.Path):
		return fault.Errorf(fault.Invalid, "path: must be absolute (got %q)", order.Path)
	case a.o.Backups == nil && a.o.Mode == Running:
		return fault.Errorf(fault.Invalid, "this store is copied with its own server's tools, such as pg_dump")
	case a.o.Backups == nil:
		return fault.Wrap(fault.Temporary, errNotRunning)
	}
	b, err := a.o.Backups.Backup(r.Context(), order.Path, order.Passphrase)
	if err != nil {
		return fmt.Errorf("make a backup: %w", err)
	}
	return a.answer(w, http.StatusCreated, b)
}
