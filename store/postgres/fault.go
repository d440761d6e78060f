package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"leasehold/internal/fault"
	"leasehold/store/internal/record"
)

// state is the five letters with which the server says what is wrong; "" when it
// said nothing.
func state(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// shuttingDown reports whether the server is going down or coming up.
func shuttingDown(code string) bool {
	switch code {
	case "57P01", "57P02", "57P03", "57P05", "25P03":
		return true
	default:
		return false
	}
}

// lost reports whether err is about the connection and not about a statement.
func lost(err error) bool {
	var network net.Error
	return shuttingDown(state(err)) || strings.HasPrefix(state(err), "08") || errors.As(err, &network) ||
		errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) || strings.Contains(err.Error(), "unexpected EOF")
}

// again reports whether the same write may succeed at once when it is repeated, and
// has surely had no effect.
func again(err error) bool {
	switch state(err) {
	case "40001", "40P01", "55P03": // serialisation, deadlock, lock not available
		return true
	case "0A000": // a plan made before an upgrade changed the tables
		return strings.Contains(err.Error(), "cached plan")
	default:
		return pgconn.SafeToRetry(err)
	}
}

// dataError reports whether err is about the values of one statement, so that
// what others brought may be stored.
func dataError(err error) bool {
	code := state(err)
	return strings.HasPrefix(code, "22") || strings.HasPrefix(code, "23") || strings.HasPrefix(code, "54")
}

// classify gives what went wrong with the database its kind and ends it with the
// next step. Errors that have a kind, and those that are neither the server's nor
// the network's, stay as they are.
func (t *target) classify(err error) error {
	if err == nil || fault.Of(err) != fault.Internal {
		return err
	}
	if kind := t.classifyServer(err); kind != nil {
		return kind
	}
	if kind := t.classifyTLS(err); kind != nil {
		return kind
	}
	if lost(err) || errors.As(err, new(*pgconn.ConnectError)) {
		return fault.Errorf(fault.Temporary, "the database %s does not answer: %w; check that it runs and can be reached from here", t, err)
	}
	return err
}

func (t *target) classifyServer(err error) error {
	code := state(err)
	user := t.pool.ConnConfig.User
	switch code {
	case "":
		return nil
	case "53100":
		return fault.Errorf(fault.Full, "the disk under the database %s is full: %w; free some space there, nothing else is needed", t, err)
	case "25006":
		return fault.Errorf(fault.ReadOnly, "the database %s is read-only: %w; point store.url at the primary, or add target_session_attrs=read-write to it", t, err)
	case "58030":
		return fault.Errorf(fault.ReadOnly, "the disk under the database %s fails: %w; look at the server's log", t, err)
	case "XX001", "XX002":
		return fault.Errorf(fault.Corrupt, "the database %s is damaged: %w; stop the nodes and restore a backup of it", t, err)
	case "28P01", "28000":
		return fault.Errorf(fault.Denied, "the database %s does not let %s in: %w; check the role and the password in store.url, and pg_hba.conf on the server", t, user, err)
	case "42501":
		return fault.Errorf(fault.Denied, "%s may not do this in the database %s: %w; make it the database's owner: ALTER DATABASE %s OWNER TO %s", user, t, err, t.pool.ConnConfig.Database, user)
	case "3D000":
		return fault.Errorf(fault.Invalid, "the server has no database %s: %w; make it with: createdb --owner %s %s", t, err, user, t.pool.ConnConfig.Database)
	case "53300":
		return fault.Errorf(fault.Temporary, "the database %s has no connection left: %w; raise max_connections there, or lower pool_max_conns in store.url", t, err)
	case "40001", "40P01", "55P03", "57014":
		return fault.Errorf(fault.Busy, "the database %s is busy: %w; look for long transactions in pg_stat_activity", t, err)
	case "42P01", "42703", "42883", "3F000":
		return fault.Errorf(fault.Gone, "what leasehold keeps in the database %s was removed or changed: %w; restore a backup of it", t, err)
	}
	switch {
	case dataError(err):
		return fault.Errorf(fault.Invalid, "a value cannot be stored: %w", err)
	case shuttingDown(code), strings.HasPrefix(code, "08"), strings.HasPrefix(code, "53"):
		return fault.Errorf(fault.Temporary, "the database %s cannot answer now: %w; it is tried again", t, err)
	default:
		return fault.Wrap(fault.Internal, err)
	}
}

func (t *target) classifyTLS(err error) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	switch {
	case errors.As(err, &unknown):
		return fault.Errorf(fault.Invalid, "the database %s shows a certificate of an authority that is not known here: %w; add sslrootcert=FILE to store.url", t, err)
	case errors.As(err, &name):
		return fault.Errorf(fault.Invalid, "the database %s shows a certificate of another name: %w; use that name in store.url, or sslmode=verify-ca", t, err)
	case errors.As(err, &invalid), errors.As(err, &verification):
		return fault.Errorf(fault.Invalid, "the database %s shows a certificate that is not valid: %w; renew it on the server", t, err)
	case strings.Contains(err.Error(), "server refused TLS connection"):
		return fault.Errorf(fault.Invalid, "the database %s speaks no TLS: %w; switch ssl on there, or set sslmode=disable in store.url if the network is yours alone", t, err)
	default:
		return nil
	}
}

// failed wraps err with what was being done.
func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// plain is record.Plain.
func plain(s string) string {
	return record.Plain(s)
}
