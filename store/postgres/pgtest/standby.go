package pgtest

import (
	"strconv"
	"testing"
)

// Standby returns a second server, of the test's own, that follows this one: it
// takes no writes, and has what this one committed a moment ago.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	standby, err := start(s.bin, s.settings, func(n *Server) error {
		return n.tool("pg_basebackup", "--pgdata", n.data(), "--host", s.dir, "--port", strconv.Itoa(s.port), "--username", Role,
			"--checkpoint", "fast", "--wal-method", "stream", "--write-recovery-conf", "--no-sync")
	})
	return ofTest(t, standby, err)
}

// Follows waits until a standby has all that the server has committed so far.
func (s *Server) Follows(t testing.TB, of *Server) {
	t.Helper()
	var at string
	Get(t, of.URL("postgres"), "SELECT pg_current_wal_lsn()::text", &at)
	Eventually(t, "the standby has what was committed", func() bool {
		var there bool
		Get(t, s.URL("postgres"), "SELECT coalesce(pg_last_wal_replay_lsn() >= '"+at+"'::pg_lsn, false)", &there)
		return there
	})
}

// Promote makes a standby a server of its own, which takes writes when it returns.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	var done bool
	Get(t, s.URL("postgres"), "SELECT pg_promote(true, 60)", &done)
	if !done {
		t.Fatal("the standby is not promoted")
	}
}
