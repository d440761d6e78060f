package admin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/internal/fault"
)

// copier notes where it was told to write.
type copier struct {
	path string
	err  error
}

func (c *copier) Backup(_ context.Context, path, _ string) (admin.Backup, error) {
	c.path = path
	return admin.Backup{Path: "/data/backups/x.db", Bytes: 5, At: time.Unix(1000, 0).UTC(), TookMS: 7, Through: 3}, c.err
}

func TestBackups(t *testing.T) {
	t.Run("a backup is made where it was asked for, and told", func(t *testing.T) {
		w, c := newWorld(t), &copier{}
		w.options.Backups = c
		got, err := w.client().MakeBackup(t.Context(), "/mnt/usb/one.db", "")
		if err != nil || got.Path != "/data/backups/x.db" || got.Through != 3 || got.TookMS != 7 || c.path != "/mnt/usb/one.db" {
			t.Errorf("got %+v, %v at %s, want the backup", got, err, c.path)
		}
		a := w.want(w.do("POST", "/v1/backups", "{}"), http.StatusCreated)
		var b admin.Backup
		if err := json.Unmarshal([]byte(a.body), &b); err != nil || c.path != "" {
			t.Errorf("got %s at %q, %v, want a backup at a dated name", a.body, c.path, err)
		}
	})

	t.Run("what is wrong is told by its kind", func(t *testing.T) {
		w := newWorld(t)
		w.want(w.do("POST", "/v1/backups", "{}"), http.StatusServiceUnavailable, "leasehold run")
		w.options.Mode = admin.Running
		w.want(w.do("POST", "/v1/backups", "{}"), http.StatusUnprocessableEntity, "pg_dump")
		w.options.Backups = &copier{}
		w.want(w.do("POST", "/v1/backups", `{"path":"one.db"}`), http.StatusUnprocessableEntity, "must be absolute")
		w.want(w.do("POST", "/v1/backups", `{"file":"/x"}`), http.StatusUnprocessableEntity, "file")
		w.want(w.do("POST", "/v1/backups?path=/x", "{}"), http.StatusUnprocessableEntity, "path")
		w.options.Backups = &copier{err: fault.Errorf(fault.Conflict, "/x is there already")}
		w.want(w.do("POST", "/v1/backups", `{"path":"/x"}`), http.StatusConflict, "make a backup: /x is there already")
		w.options.Backups = &copier{err: fault.Errorf(fault.Full, "no room for the copy in /x")}
		w.want(w.do("POST", "/v1/backups", `{"path":"/x/y"}`), http.StatusServiceUnavailable, "no room for the copy in /x")
	})
}
