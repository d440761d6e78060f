package postgres

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"leasehold/internal/fault"
)

const (
	// connectTimeout is for a server that does not answer, unless the URL says
	// connect_timeout: a renewal that has to dial first must fit into its attempt.
	connectTimeout = 2 * time.Second

	// statementTimeout bounds a statement on the server: the largest group of events on
	// a slow disk takes a tenth of it. What it ends has had no effect.
	statementTimeout = 15 * time.Second
	// writeTimeout bounds a write here, in the case that the server never answers: its
	// outcome is unknown then. It is longer than the server's, to hear that one first.
	writeTimeout = 18 * time.Second
	// idleTimeout ends a transaction of ours that somebody forgot: it may hold a lease's
	// lock.
	idleTimeout = 10 * time.Second

	// poolSize is the connections of the pool unless the URL says pool_max_conns: two
	// that commit events, and as many again for leases, lists and lanes.
	poolSize = 8
	// poolLeast keeps an upgrade of the schema from waiting for itself: it holds one
	// connection and works on another.
	poolLeast = 4
)

// target is the database as the URL names it.
type target struct {
	pool   *pgxpool.Config
	pooled bool // by something that keeps no connection for us
}

// parse reads a postgres: URL. The keys in it are those of libpq (sslmode,
// sslrootcert, sslcert, sslkey, target_session_attrs, connect_timeout, …) and
// pool_max_conns. What cannot be read is fault.Invalid; no password is repeated.
func parse(url string, o Options) (*target, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fault.Errorf(fault.Invalid, "store.url: %w; write postgres://USER@HOST/DATABASE?sslmode=verify-full", err)
	}
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = connectTimeout
	}
	if !strings.Contains(url, "pool_max_conns") {
		c.MaxConns = poolSize
	}
	c.MaxConns = max(c.MaxConns, poolLeast)
	c.PingTimeout = connectTimeout
	params := c.ConnConfig.RuntimeParams
	if params["application_name"] == "" {
		params["application_name"] = "leasehold " + o.Name
	}
	if o.PollOnly {
		// A pooler refuses settings that it does not know, and may run a statement on
		// another connection than the one that it was prepared on.
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		return &target{pool: c, pooled: true}, nil
	}
	for _, s := range settings(statementTimeout) {
		params[s[0]] = s[1]
	}
	params["default_transaction_isolation"] = "read committed"
	return &target{pool: c}, nil
}

// settings are what every one of our transactions runs under, whatever the role,
// the database or the URL say.
func settings(statement time.Duration) [][2]string {
	return [][2]string{
		{"synchronous_commit", "on"},
		{"statement_timeout", strconv.FormatInt(statement.Milliseconds(), 10)},
		{"idle_in_transaction_session_timeout", strconv.FormatInt(idleTimeout.Milliseconds(), 10)},
	}
}

// single is how the two connections beside the pool are opened.
func (t *target) single(statement time.Duration) *pgx.ConnConfig {
	c := t.pool.ConnConfig.Copy()
	if !t.pooled {
		for _, s := range settings(statement) {
			c.RuntimeParams[s[0]] = s[1]
		}
	}
	return c
}

// Shown is url for people: without its password.
func Shown(url string) string {
	t, err := parse(url, Options{})
	if err != nil {
		return "postgres"
	}
	c := t.pool.ConnConfig
	if strings.HasPrefix(c.Host, "/") { // a folder with a socket
		return fmt.Sprintf("postgres:///%s?host=%s&port=%d", c.Database, c.Host, c.Port)
	}
	return "postgres://" + net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))) + "/" + c.Database
}

// String names the database for people, without a password.
func (t *target) String() string {
	c := t.pool.ConnConfig
	return c.Database + " on " + c.Host
}
