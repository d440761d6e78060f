//go:build linux

package evidence_test

import (
	bytesof "encoding/binary" // binary is the program
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"golang.org/x/sys/unix"

	"leasehold/internal/fault"
	"leasehold/internal/seal"
	"leasehold/internal/vault"
	"leasehold/store/sqlite"
)

const (
	// masterKillsEnv is how often a rotation is killed; "make soak" says 300.
	masterKillsEnv = "LEASEHOLD_MASTER_KILLS"
	// defaultMasterKills take some seconds; racedMasterKills, with the race detector in
	// the program, too.
	defaultMasterKills, racedMasterKills = 16, 4
	// sealedSecrets are what a rotation seals anew, beside a signing key.
	sealedSecrets = 5
)

func TestMasterKeyKilled(t *testing.T) {
	t.Run("whenever a rotation of the master key is killed, everything is readable with the key in place, and no other one opens it", func(t *testing.T) {
		kills := defaultMasterKills
		if raced {
			kills = racedMasterKills
		}
		if text := os.Getenv(masterKillsEnv); text != "" {
			n, err := strconv.Atoi(text)
			must(t, err)
			kills = n
		}
		s := newSealed(t)
		// How many steps there are while nobody kills.
		here := s.steps(func() { done(t, s.box, "keys", "rotate-master") })
		p := s.runs()
		there := s.steps(func() { done(t, s.box, "keys", "rotate-master") })
		p.kill()
		s.readable()
		clear(s.states)
		for n := range kills {
			if n%2 == 0 {
				s.rotateAndKill(nil, 1+rand.N(here))
			} else {
				s.rotateAndKill(s.runs(), 1+rand.N(there))
			}
			s.readable()
		}
		s.delivers()
		t.Logf("%d kills, at one of %d steps without a program that runs and of %d with one: %s", kills, here, there, s.found())
	})
}

// sealed is a box with secrets and a signing key, and what was found of its master keys
// after each kill.
type sealed struct {
	*box
	server *httptest.Server
	took   chan error // the verdict of the first event that nobody has asked for yet

	last   seal.Ring // the key in use
	states map[string]int

	mu  sync.Mutex // guards key: the server runs before there is one
	key madeKey    // the signing key
}

func newSealed(t *testing.T) *sealed {
	t.Helper()
	s := &sealed{box: newBox(t, ""), took: make(chan error, 1), states: map[string]int{}}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	s.configure(fmt.Sprintf(`[node]
data_dir = "data"
[[target]]
name = "app"
type = "http"
url = %q
headers = { Authorization = { secret = "secret-3" } }
[[installation]]
id = "acme"
type = "heartbeat"
[installation.config]
every = "1s"
`, s.server.URL))
	for n := range sealedSecrets {
		set := s.command("secrets", "set", fmt.Sprint("secret-", n))
		set.Stdin = strings.NewReader(valueOf(n))
		if out, err := set.CombinedOutput(); err != nil {
			t.Fatalf("secrets set: got %v %s, want a success", err, out)
		}
	}
	key := created(t, s.box)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
	return s
}

func valueOf(n int) string { return fmt.Sprint("value-of-", n) }

func (s *sealed) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender was killed in the middle of it
	}
	s.mu.Lock()
	key := s.key
	s.mu.Unlock()
	webhook, err := standardwebhooks.NewWebhook(key.Key)
	if err == nil {
		err = webhook.Verify(body, r.Header)
	}
	if got := r.Header.Get("Authorization"); err == nil && got != valueOf(3) {
		err = fmt.Errorf("the header is %q", got)
	}
	select {
	case s.took <- err:
	default:
	}
}

// steps counts those of a rotation that f does.
func (s *sealed) steps(f func()) int {
	s.Helper()
	n := 0
	quit := s.watch(func() { n++ })
	f()
	quit()
	if n == 0 {
		s.Fatal("got no step of a rotation, want some")
	}
	return n
}

// watch calls f for each step of a rotation, until it is quit: what happens to the file
// of the keys and to the database's log, from the first new content of that file on.
func (s *sealed) watch(f func()) (quit func()) {
	s.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	must(s.T, err)
	events := os.NewFile(uintptr(fd), "inotify")
	_, err = unix.InotifyAddWatch(fd, s.data(""), unix.IN_CREATE|unix.IN_MODIFY|unix.IN_MOVED_TO|unix.IN_DELETE|unix.IN_CLOSE_WRITE)
	must(s.T, err)
	var all sync.WaitGroup
	all.Go(func() {
		buf, begun := make([]byte, 64<<10), false
		for {
			n, err := events.Read(buf)
			if err != nil {
				return // it was quit
			}
			for at := 0; at+unix.SizeofInotifyEvent <= n; at += unix.SizeofInotifyEvent + int(bytesof.NativeEndian.Uint32(buf[at+12:])) {
				name := string(buf[at+unix.SizeofInotifyEvent:][:bytesof.NativeEndian.Uint32(buf[at+12:])])
				ofKeys := strings.Contains(name, "master.key")
				if begun = begun || ofKeys; ofKeys || begun && strings.HasPrefix(name, "leasehold.db-wal") {
					f()
				}
			}
		}
	})
	return func() {
		_ = events.Close()
		all.Wait()
	}
}

// rotateAndKill rotates by a command, and kills whoever does it, the command or the
// program that runs, with the nth step.
func (s *sealed) rotateAndKill(running *process, n int) {
	s.Helper()
	reached, ended := make(chan struct{}), make(chan struct{})
	quit := s.watch(func() {
		if n--; n == 0 {
			close(reached)
		}
	})
	rotate := s.command("keys", "rotate-master")
	must(s.T, rotate.Start())
	go func() {
		_ = rotate.Wait() // it ends as it can
		close(ended)
	}()
	select {
	case <-reached:
	case <-ended: // there were fewer than the last time
	}
	if running != nil {
		running.kill()
	} else if err := rotate.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.Error(err)
	}
	<-ended
	quit()
}

// readable opens, with the keys that are in place, what is in the store of a box that
// nothing runs on.
func (s *sealed) readable() {
	s.Helper()
	ctx := s.Context()
	store, err := sqlite.Open(ctx, s.database(), sqlite.Options{ReserveBytes: -1})
	must(s.T, err)
	defer func() { must(s.T, store.Close()) }()
	file := seal.File(s.data("master.key"))
	v := vault.New(vault.Options{Store: store, Keys: file.Read})
	_, err = v.Refresh(ctx)
	must(s.T, err)
	for n := range sealedSecrets {
		got, err := v.Secret(fmt.Sprint("secret-", n))
		must(s.T, err)
		want(s.T, "secret", got, valueOf(n))
	}
	want(s.T, "signing keys", strings.Join(v.SigningKeys("app"), " "), s.key.Key)

	key, err := v.MasterKey(ctx)
	must(s.T, err)
	ring, err := file.Read()
	must(s.T, err)
	for _, other := range append(ring, s.last...) {
		if other.ID() == key.ID() {
			continue
		}
		alone := vault.New(vault.Options{Store: store, Keys: func() (seal.Ring, error) { return seal.Ring{other}, nil }})
		if _, err := alone.Refresh(ctx); !fault.Is(err, fault.Invalid) || !strings.Contains(fmt.Sprint(err), key.ID()) {
			s.Errorf("with master key %s alone: got %v, want it refused and %s named", other.ID(), err, key.ID())
		}
	}
	_, before := s.last.Find(key.ID())
	state := map[bool]string{true: "not rotated", false: "rotated"}[before]
	if len(ring) > 1 {
		state += ", both keys in the file"
	}
	if len(s.copies()) > 0 {
		state += ", a copy beside it"
	}
	s.states[state]++
	s.last = seal.Ring{key}
}

// copies are what a killed write of the keys left.
func (s *sealed) copies() []string {
	s.Helper()
	found, err := filepath.Glob(s.data(".master.key.*"))
	must(s.T, err)
	return found
}

// runs starts the program, which leaves one key in the file and none beside it.
func (s *sealed) runs() *process {
	s.Helper()
	p := s.start()
	p.saying(`"msg":"ready"`)
	ring, err := seal.File(s.data("master.key")).Read()
	must(s.T, err)
	want(s.T, "keys in the file of a program that runs", len(ring), 1)
	want(s.T, "copies of keys beside it", len(s.copies()), 0)
	return p
}

// delivers waits for an event that is signed with the key, with the secret in its header.
func (s *sealed) delivers() {
	s.Helper()
	select {
	case err := <-s.took: // an event of before
		must(s.T, err)
	default:
	}
	p := s.runs()
	select {
	case err := <-s.took:
		must(s.T, err)
	case <-time.After(time.Minute):
		s.Fatalf("got no event within a minute:\n%s", p.tail())
	}
	p.stop()
}

// found says how often a kill left what.
func (s *sealed) found() string {
	var all []string
	for _, state := range slices.Sorted(maps.Keys(s.states)) {
		all = append(all, fmt.Sprintf("%d %s", s.states[state], state))
	}
	return strings.Join(all, "; ")
}
