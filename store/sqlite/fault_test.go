package sqlite

import (
	"context"
	"fmt"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"leasehold/engine"
	"leasehold/internal/fault"
	"leasehold/store/internal/record"
)

func TestFaults(t *testing.T) {
	for what, c := range map[string]struct {
		code int
		kind fault.Kind
		says string
	}{
		"busy":          {sqlite3.SQLITE_BUSY, fault.Busy, "fuser"},
		"busy snapshot": {sqlite3.SQLITE_BUSY_SNAPSHOT, fault.Busy, "fuser"},
		"locked":        {sqlite3.SQLITE_LOCKED, fault.Busy, "fuser"},
		"full":          {sqlite3.SQLITE_FULL, fault.Full, "free some space"},
		"read-only":     {sqlite3.SQLITE_READONLY, fault.ReadOnly, "mounted read-write"},
		"cannot open":   {sqlite3.SQLITE_CANTOPEN, fault.ReadOnly, "check the owner"},
		"i/o":           {sqlite3.SQLITE_IOERR, fault.ReadOnly, "file system check"},
		"short read":    {sqlite3.SQLITE_IOERR_SHORT_READ, fault.ReadOnly, "file system check"},
		"sync":          {sqlite3.SQLITE_IOERR_FSYNC, fault.ReadOnly, "file system check"},
		"corrupt":       {sqlite3.SQLITE_CORRUPT, fault.Corrupt, "restore a backup"},
		"no database":   {sqlite3.SQLITE_NOTADB, fault.Corrupt, "restore a backup"},
		"too big":       {sqlite3.SQLITE_TOOBIG, fault.Invalid, "larger"},
		"constraint":    {sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY, fault.Internal, ""},
		"datatype":      {sqlite3.SQLITE_CONSTRAINT_DATATYPE, fault.Internal, ""},
		"misuse":        {sqlite3.SQLITE_MISUSE, fault.Internal, ""},
	} {
		t.Run("a code has its kind and the next step: "+what, func(t *testing.T) {
			err := classify("/data/leasehold.db", fmt.Errorf("step: %w", driverError(c.code)))
			want(t, "kind", fault.Of(err), c.kind)
			wantText(t, err, c.says)
			if c.kind != fault.Internal && c.kind != fault.Invalid {
				wantText(t, err, "/data/leasehold.db")
			}
		})
	}
	t.Run("what is not SQLite's stays what it is", func(t *testing.T) {
		for _, err := range []error{nil, context.Canceled, engine.ErrFenced, record.NoInstallation("i")} {
			want(t, "error", classify("x", err), err)
		}
	})
}
