package postgres_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/delivery/outbound"
	"leasehold/internal/fault"
	"leasehold/internal/identity"
	"leasehold/store/postgres"
	"leasehold/store/postgres/pgtest"
)

// refused opens what must not open.
func refused(t *testing.T, url string, o postgres.Options, kind fault.Kind, words ...string) {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, o)
	if err == nil {
		_ = s.Close()
		t.Fatalf("got an open store, want %v", kind)
	}
	if fault.Of(err) != kind {
		t.Errorf("got kind %v (%v), want %v", fault.Of(err), err, kind)
	}
	for _, w := range append(words, "open the store") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got %v, want it to say %q", err, w)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, want no password in it", err)
	}
}

// overTCP is a database's URL over loopback, as somebody.
func overTCP(t *testing.T, s *pgtest.Server, database, user, parameters string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("postgres://%s@%s%s?%s", user, s.Addr(), u.Path, parameters)
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	server := pgtest.Shared(t)
	database := server.Database(t)
	server.Exec(t, "CREATE ROLE "+pgtest.Guest+" LOGIN PASSWORD 'hunter2'")
	t.Cleanup(func() { server.Exec(t, "DROP ROLE "+pgtest.Guest) })
	const plain = "sslmode=disable"

	t.Run("no URL", func(t *testing.T) {
		refused(t, "postgres://u:hunter2@h:port/db", postgres.Options{}, fault.Invalid, "postgres://USER@HOST/DATABASE")
	})
	t.Run("nobody answers", func(t *testing.T) {
		refused(t, "postgres://u:hunter2@127.0.0.1:1/db", postgres.Options{}, fault.Temporary, "db on 127.0.0.1 does not answer")
	})
	t.Run("no such role", func(t *testing.T) {
		refused(t, overTCP(t, server, database, "nobody", plain), postgres.Options{}, fault.Denied, "does not let nobody in", "check the role")
	})
	t.Run("another password", func(t *testing.T) {
		refused(t, overTCP(t, server, database, pgtest.Guest+":wrong", plain), postgres.Options{}, fault.Denied, "check the role and the password")
	})
	t.Run("no such database", func(t *testing.T) {
		refused(t, server.URL("missing"), postgres.Options{}, fault.Invalid, "createdb --owner leasehold missing")
	})
	t.Run("a role that may not make tables", func(t *testing.T) {
		pgtest.Exec(t, database, "REVOKE CREATE ON SCHEMA public FROM public")
		refused(t, overTCP(t, server, database, pgtest.Guest+":hunter2", plain), postgres.Options{}, fault.Denied, "OWNER TO guest")
	})
	t.Run("no TLS where it is asked for", func(t *testing.T) {
		refused(t, overTCP(t, server, database, pgtest.Role, "sslmode=require"), postgres.Options{}, fault.Invalid, "sslmode=disable")
	})
	t.Run("nothing there, and nothing to be made", func(t *testing.T) {
		refused(t, database, postgres.Options{Existing: true}, fault.NotFound, "leasehold run")
	})
	t.Run("a server that is read-only", func(t *testing.T) {
		database := server.Database(t)
		u, err := url.Parse(database)
		if err != nil {
			t.Fatal(err)
		}
		server.Exec(t, "ALTER DATABASE "+u.Path[1:]+" SET default_transaction_read_only = on")
		refused(t, database, postgres.Options{}, fault.ReadOnly, "target_session_attrs=read-write")
	})
}

func TestCertificates(t *testing.T) {
	server := pgtest.New(t)
	database := server.Database(t)
	cert, key := certificate(t, "db.example.org")
	server.Speak(t, cert, key)
	authority := filepath.Join(t.TempDir(), "root.crt")
	if err := os.WriteFile(authority, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	known := "&sslrootcert=" + url.QueryEscape(authority)

	t.Run("an authority that is not known", func(t *testing.T) {
		refused(t, overTCP(t, server, database, pgtest.Role, "sslmode=verify-ca"), postgres.Options{}, fault.Invalid, "sslrootcert=FILE")
	})
	t.Run("another name", func(t *testing.T) {
		refused(t, overTCP(t, server, database, pgtest.Role, "sslmode=verify-full"+known), postgres.Options{}, fault.Invalid, "another name")
	})
	t.Run("a known authority", func(t *testing.T) {
		s := open(t, overTCP(t, server, database, pgtest.Role, "sslmode=verify-ca"+known), postgres.Options{})
		put(t, s)
		var encrypted bool
		pgtest.Get(t, database, "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.datname = current_database() AND a.application_name LIKE 'leasehold%'", &encrypted)
		if !encrypted {
			t.Error("got a connection in the clear, want every one encrypted")
		}
	})
}

// certificate makes a self-signed one for a host.
func certificate(t *testing.T, host string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

func TestSchema(t *testing.T) {
	server := pgtest.Shared(t)

	t.Run("many first starts at once make it once", func(t *testing.T) {
		url := server.Database(t)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				s, err := postgres.Open(t.Context(), url, postgres.Options{})
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		var applied, recorded int
		pgtest.Get(t, url, "SELECT count(*) FROM goose_db_version WHERE version_id > 0", &applied)
		pgtest.Get(t, url, "SELECT count(*) FROM schema_file", &recorded)
		if applied == 0 || applied != recorded {
			t.Errorf("got %d migrations applied and %d recorded, want each once", applied, recorded)
		}
	})

	t.Run("a newer one is refused, unless it says that this program may use it", func(t *testing.T) {
		url := server.Database(t)
		if err := open(t, url, postgres.Options{}).Close(); err != nil {
			t.Fatal(err)
		}
		pgtest.Exec(t, url, "INSERT INTO goose_db_version(version_id, is_applied) VALUES (99, true)")
		put(t, open(t, url, postgres.Options{}))
		pgtest.Exec(t, url, "UPDATE schema_info SET min_reader = 99")
		refused(t, url, postgres.Options{}, fault.Newer, "schema 99")
		refused(t, url, postgres.Options{Existing: true}, fault.Newer, "schema 99")
	})

	t.Run("a migration that was edited after it was applied is refused", func(t *testing.T) {
		url := server.Database(t)
		if err := open(t, url, postgres.Options{}).Close(); err != nil {
			t.Fatal(err)
		}
		pgtest.Exec(t, url, "UPDATE schema_file SET sha256 = 'another' WHERE version = 1")
		refused(t, url, postgres.Options{}, fault.Internal, "0001_first.sql is not the one that was applied")
	})

	t.Run("the data folder remembers the store", func(t *testing.T) {
		url, dir := server.Database(t), t.TempDir()
		open(t, url, postgres.Options{DataDir: dir})
		var store string
		pgtest.Get(t, url, "SELECT store_id FROM schema_info", &store)
		if id, err := identity.Load(dir); err != nil || id.Store != store {
			t.Errorf("got %+v, %v, want the store %s", id, err, store)
		}
	})
}

// Every transaction says for itself what it must not go without: the server of these
// tests has it otherwise, and so has the database.
func TestForcedSettings(t *testing.T) {
	for name, o := range map[string]postgres.Options{"with prepared statements": {}, "as behind a pooler": {PollOnly: true}} {
		t.Run(name, func(t *testing.T) {
			server := pgtest.Shared(t)
			database := server.Database(t)
			u, err := url.Parse(database)
			if err != nil {
				t.Fatal(err)
			}
			server.Exec(t, "ALTER DATABASE "+u.Path[1:]+" SET default_transaction_isolation = 'serializable'")
			s := open(t, database, o)
			pgtest.Exec(t, database, `CREATE TABLE seen (what text, durable text, isolation text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO seen VALUES (TG_TABLE_NAME, current_setting('synchronous_commit'), current_setting('transaction_isolation')); RETURN NULL;
END $$;
CREATE TRIGGER see AFTER INSERT OR UPDATE ON session FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER see AFTER INSERT OR UPDATE ON installation FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER see AFTER INSERT OR UPDATE ON lease FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER see AFTER INSERT OR UPDATE ON event FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER see AFTER INSERT OR UPDATE ON delivery FOR EACH ROW EXECUTE FUNCTION see();`)
			term := hold(t, s)
			if err := renew(t, s, time.Minute); err != nil {
				t.Fatal(err)
			}
			if err := accept(t, s, term, "1"); err != nil {
				t.Fatal(err)
			}
			var tables, otherwise int
			pgtest.Get(t, database, "SELECT count(DISTINCT what) FROM seen", &tables)
			pgtest.Get(t, database, "SELECT count(*) FROM seen WHERE durable <> 'on' OR isolation <> 'read committed'", &otherwise)
			if tables != 5 || otherwise != 0 {
				t.Errorf("got %d tables written and %d rows under other settings, want 5 and none", tables, otherwise)
			}
		})
	}
}

func TestWordOfOtherNodes(t *testing.T) {
	for name, o := range map[string]postgres.Options{"is heard": {}, "is found by polling": {PollOnly: true}} {
		t.Run(name, func(t *testing.T) {
			url := pgtest.Shared(t).Database(t)
			s, other := open(t, url, o), open(t, url, postgres.Options{})
			changes, mail := s.Watch(t.Context()), s.WatchMessages(t.Context())
			quiet := func() { // what it was told before, and that it listens
				for {
					select {
					case <-changes:
					case <-time.After(3 * time.Second):
						return
					}
				}
			}
			quiet()
			put(t, other)
			heard := func(what string) {
				select {
				case <-changes:
				case <-time.After(time.Minute):
					t.Errorf("got no word of %s, want one", what)
				}
			}
			heard("another node's installation")
			quiet()
			select {
			case <-mail: // it may have missed some
			default:
			}
			m := outbound.Message{Message: channel.Message{ID: "out_1", Installation: "i", Op: "send"}, ExpiresIn: time.Hour}
			if _, err := other.PutMessage(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			select {
			case <-mail:
			case <-time.After(time.Minute):
				t.Error("got no word of another node's message, want one")
			}
		})
	}
}
