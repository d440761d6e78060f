package sqlite

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"modernc.org/sqlite"
)

const (
	// readers is the size of the read pool: enough for a page, a listing and the
	// lanes at once; each connection may hold 2 to 4 MB of cache.
	readers = 4

	// busyTimeout is how long a statement waits for a lock of another program.
	busyTimeout = "5000"

	// dsnBase is what every connection is opened with. A typo in a validated key is
	// an error when the database is opened; in a _pragma it would be ignored and leave
	// the default, so only what has no key of its own stands there. A test asserts
	// each value on an open connection.
	dsnBase = "?_busy_timeout=" + busyTimeout + "&_foreign_keys=1&_synchronous=FULL&_dqs=0&_defensive=1&_error_rc=1" +
		"&_pragma=temp_store(2)&_pragma=wal_autocheckpoint(1000)&_pragma=journal_size_limit(16777216)"

	// dsnCreate makes a new file: both settings persist in it. In the everyday
	// settings they would take the write lock at every open.
	dsnCreate = dsnBase + "&_auto_vacuum=2&_journal_mode=WAL&_txlock=immediate"

	// Pools open connections all their life: what is open already is not to be made
	// anew, empty, because somebody moved it away meanwhile.
	dsnWrite = dsnBase + "&_txlock=immediate&mode=rw"
	dsnRead  = dsnBase + "&_query_only=1&mode=rw"

	// dsnBackup reads for a copy, which needs to write elsewhere. dsnCopy finishes the
	// copy without a file beside it: one that fails is thrown away.
	dsnBackup = dsnBase + "&mode=rw"
	dsnCopy   = dsnBase + "&_journal_mode=MEMORY&_txlock=immediate&mode=rw"

	// dsnStill reads a file that nobody changes, without a lock or a file beside it.
	dsnStill = dsnBase + "&_query_only=1&mode=ro&immutable=1"

	// dsnLook does not even touch the log.
	dsnLook = dsnBase + "&_query_only=1&mode=ro"
)

// dsn names the file at path with one of the settings above. The file: form is
// what makes SQLite read the settings, so the path is escaped.
func dsn(path, settings string) string {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // a Windows drive
	}
	return "file:" + (&url.URL{Path: p}).EscapedPath() + settings
}

// setUpDriver makes the process-wide settings of the driver before its first
// open. With OFD locks a close of the file anywhere in the process does not drop
// SQLite's own: with POSIX locks one did, and a foreign tool then deleted the
// live log. They exist on Linux only.
var setUpDriver = sync.OnceValue(func() error {
	if _, err := sqlite.OFDLocking(true); err != nil && !errors.Is(err, sqlite.ErrOFDLockingUnavailable) {
		return fmt.Errorf("set up sqlite: %w", err)
	}
	if _, err := sqlite.Fdatasync(true); err != nil && !errors.Is(err, sqlite.ErrFdatasyncUnavailable) {
		return fmt.Errorf("set up sqlite: %w", err)
	}
	sqlite.StrictPragmas(true)
	return nil
})
