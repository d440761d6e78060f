// Package pgtest starts a PostgreSQL server that nobody misses: for the tests of
// what is built on one. It has no data of anybody's, listens on a Unix socket and on
// loopback, and is gone with the process that started it. It does not sync to the
// disk; everything else is as the server's makers ship it.
//
// A server never runs as root: where the test does, it is the user postgres or
// nobody.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"leasehold/internal/freeport"
	"leasehold/internal/need"
)

// Role is the superuser of every server; it has no password on the Unix socket.
const Role = "leasehold"

// access lets everybody in, but for one who has to say a password: see Guest.
const access = `local all all trust
host all ` + Guest + ` 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
local replication all trust
`

// Guest is a name for a role that needs its password on loopback. A test that wants
// it makes it.
const Guest = "guest"

const (
	startWithin = time.Minute // for a machine with other things to do
	stopWithin  = 20 * time.Second
	lookEvery   = 20 * time.Millisecond
)

// Server is a running server.
type Server struct {
	bin, dir string
	port     int
	release  func() // gives the port back
	settings []string

	mu    sync.Mutex // guards what follows
	cmd   *exec.Cmd
	ended chan struct{}
	log   *os.File
	made  int // databases
}

var shared struct {
	sync.Mutex

	server *Server
}

// Main runs the tests and stops the server that they shared, if they did. It is for
// a TestMain.
func Main(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		if err := shared.server.remove(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the test's PostgreSQL:", err)
			return max(code, 1)
		}
	}
	return code
}

// Shared returns the server that all the tests of this process use, each with
// databases of its own; see Main.
func Shared(t testing.TB) *Server {
	t.Helper()
	bin := need.Postgres(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		s, err := start(bin, nil, (*Server).initialise)
		if err != nil {
			t.Fatal(err)
		}
		shared.server = s
	}
	return shared.server
}

// New returns a server of the test's own, to be stopped and started at will, with
// settings beyond the usual ones, each as NAME=VALUE.
func New(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := start(need.Postgres(t), settings, (*Server).initialise)
	return ofTest(t, s, err)
}

// ofTest gives a server the life of a test.
func ofTest(t testing.TB, s *Server, err error) *Server {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.remove(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// start runs a server over the data that fill puts into its folder.
func start(bin string, settings []string, fill func(*Server) error) (_ *Server, err error) {
	dir, err := os.MkdirTemp("", "leasehold-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, settings: settings, release: func() {}}
	defer func() {
		if err != nil {
			s.release()
			err = errors.Join(fmt.Errorf("start a PostgreSQL: %w", err), os.RemoveAll(dir))
		}
	}()
	if s.port, s.release, err = freeport.Take(); err != nil {
		return nil, err
	}
	if err := own(dir); err != nil {
		return nil, err
	}
	if err := fill(s); err != nil {
		return nil, err
	}
	if s.log, err = os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	return s, s.run()
}

// initialise makes an empty cluster.
func (s *Server) initialise() error {
	err := s.tool("initdb", "--pgdata", s.data(), "--username", Role, "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.data(), "pg_hba.conf"), []byte(access), 0o600)
}

// tool runs one of the server's programs, as the server's user.
func (s *Server) tool(name string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, attributes()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Dir is the folder of the server's socket; its data is below.
func (s *Server) Dir() string { return s.dir }

// Addr is where it listens on loopback.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// run starts the server and waits until it answers.
func (s *Server) run() error {
	args := []string{"-D", s.data(), "-k", s.dir, "-p", strconv.Itoa(s.port)}
	for _, setting := range append([]string{
		"listen_addresses=127.0.0.1", "fsync=off", "full_page_writes=off", "track_commit_timestamp=on", "max_connections=200",
		// Off, so that whoever needs it on has to say so.
		"synchronous_commit=off",
	}, s.settings...) {
		args = append(args, "-c", setting)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd = exec.CommandContext(context.Background(), filepath.Join(s.bin, "postgres"), args...)
	s.cmd.Dir, s.cmd.SysProcAttr, s.cmd.Stdout, s.cmd.Stderr = s.dir, attributes(), s.log, s.log
	if err := launch(s.cmd); err != nil {
		return err
	}
	cmd, ended := s.cmd, make(chan struct{})
	s.ended = ended
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended is not of interest, that it did is
	}()
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	for {
		err := s.answer(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			log, _ := os.ReadFile(s.log.Name())
			return fmt.Errorf("it ended at once: %s", bytes.TrimSpace(log))
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", err)
		case <-time.After(lookEvery):
		}
	}
}

func (s *Server) answer(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// Stop stops the server at once, as a crash does.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if err := s.stop(immediately); err != nil {
		t.Fatal(err)
	}
}

// Shut stops the server in order: it ends everybody's connection, with a word of why.
func (s *Server) Shut(t testing.TB) {
	t.Helper()
	if err := s.stop(inOrder); err != nil {
		t.Fatal(err)
	}
}

// Start starts it again where it was.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
}

// Speak makes the server speak TLS on loopback, with this certificate.
func (s *Server) Speak(t testing.TB, cert, key []byte) {
	t.Helper()
	for name, content := range map[string][]byte{"server.crt": cert, "server.key": key} {
		path := filepath.Join(s.data(), name)
		if err := errors.Join(os.WriteFile(path, content, 0o600), own(path)); err != nil {
			t.Fatal(err)
		}
	}
	s.Exec(t, "ALTER SYSTEM SET ssl = on")
	s.Exec(t, "SELECT pg_reload_conf()")
}

func (s *Server) stop(how os.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ended:
		return nil
	default:
	}
	if err := s.cmd.Process.Signal(how); err != nil {
		return err
	}
	select {
	case <-s.ended:
		return nil
	case <-time.After(stopWithin):
		return errors.Join(fmt.Errorf("PostgreSQL did not end within %v", stopWithin), s.cmd.Process.Kill())
	}
}

func (s *Server) remove() error {
	defer s.release()
	return errors.Join(s.stop(immediately), s.log.Close(), os.RemoveAll(s.dir))
}
