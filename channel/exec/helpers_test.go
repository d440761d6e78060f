//go:build unix

package exec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/exec"
)

const token = "planted-token-1234567890"

// stage is a store and a folder in which programs run.
type stage struct {
	*testing.T
	dir    string
	memory *channeltest.Memory
	times  exec.Times
	env    map[string]string
	config map[string]string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return &stage{T: t, dir: t.TempDir(), memory: channeltest.NewMemory(), env: map[string]string{}, config: map[string]string{}}
}

func resolve(_, name string) (string, error) {
	if name == "TOKEN" {
		return token, nil
	}
	return "", errors.New("not set")
}

// installation is the config of a program.
func (s *stage) installation(name string) json.RawMessage {
	s.Helper()
	self, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	env := map[string]any{role: name}
	for k, v := range s.env {
		env[k] = v
	}
	env["TOKEN"] = map[string]string{"env": "TOKEN"}
	b, err := json.Marshal(map[string]any{"command": []string{self, "-puppet"}, "env": env, "config": maps.Clone(s.config)})
	if err != nil {
		s.Fatal(err)
	}
	return b
}

func (s *stage) spec() channel.Spec {
	return exec.SpecWith(os.Environ(), filepath.Join(s.dir, "run"), s.times)
}

func (s *stage) channel(name string) channel.Channel {
	s.Helper()
	c, err := s.spec().Decode(s.installation(name), resolve)
	if err != nil {
		s.Fatal(err)
	}
	ch, err := c.Build(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return ch
}

// run runs a program for one term.
func (s *stage) run(name string) *term {
	s.Helper()
	t := &term{Bench: channeltest.NewBench(nil, s.memory), s: s, ch: s.channel(name)}
	t.Start(s.Context(), t.ch)
	s.Cleanup(func() {
		t.Kill()
		<-t.Done()
	})
	return t
}

// term is a run of a program.
type term struct {
	*channeltest.Bench
	s  *stage
	ch channel.Channel
}

// connected waits until the program is ready.
func (t *term) connected() *term {
	t.s.Helper()
	t.s.await("ready", func() bool {
		select {
		case <-t.Done():
			t.s.Fatalf("got the end (%v), want it ready\n%s", t.Wait(), t.Said())
		default:
		}
		return len(t.Readies()) == 1
	})
	return t
}

// ends waits for the term's own end and checks how it is classified.
func (t *term) ends(class channel.Class, code string) channel.Exit {
	t.s.Helper()
	t.s.await("the end", func() bool {
		select {
		case <-t.Done():
			return true
		default:
			return false
		}
	})
	err := t.Wait()
	if err == nil {
		t.s.Fatalf("got no error, want %s %q", class, code)
	}
	got := channel.Classify(err)
	if got.Class != class || got.Code != code {
		t.s.Errorf("got %s %q (%v), want %s %q", got.Class, got.Code, err, class, code)
	}
	t.sane()
	return got
}

// busy is what a loaded machine may add to a bound: it is real processes that end here.
const busy = 8 * time.Second

// stops ends the term politely, and wants it to go.
func (t *term) stops(cause error) {
	t.s.Helper()
	began := time.Now()
	if err := t.Stop(cause); err != nil {
		t.s.Errorf("stop: got %v, want nil", err)
	}
	if took := time.Since(began); took > channel.Goodbye+busy {
		t.s.Errorf("stop: took %s, want less than %s", took, channel.Goodbye)
	}
	t.sane()
}

// sane checks what holds for every program.
func (t *term) sane() {
	t.s.Helper()
	if said := t.Said(); strings.Contains(said, token) {
		t.s.Errorf("the secret left the channel: %s", said)
	}
	files, err := os.ReadDir(filepath.Join(t.s.dir, "run"))
	if err == nil && len(files) > 0 {
		t.s.Errorf("got %d records after the end, want none", len(files))
	}
}

// await waits for a condition.
func (s *stage) await(what string, ok func() bool) {
	s.Helper()
	for end := time.Now().Add(time.Minute); !ok(); { // a busy machine takes its time
		if time.Now().After(end) {
			s.Fatalf("%s did not happen", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// kept lists the ids in the store.
func (s *stage) kept() []string {
	ids := []string{}
	for _, e := range s.memory.Events() {
		ids = append(ids, e.ID)
	}
	return ids
}

func (s *stage) keeps(ids ...string) {
	s.Helper()
	s.await(fmt.Sprintf("keeping %q, not %q", ids, s.kept()), func() bool { return strings.Join(s.kept(), " ") == strings.Join(ids, " ") })
}

func (t *term) notices(code string) (words []string) {
	for _, n := range t.Notices() {
		if n.Code == code {
			words = append(words, n.Words)
		}
	}
	return words
}

var offspringLine = regexp.MustCompile(`offspring (\d+)`)

// offspring waits for the number of what the program has started.
func (t *term) offspring() int {
	t.s.Helper()
	var pid int
	t.s.await("the offspring", func() bool {
		if m := offspringLine.FindStringSubmatch(t.Logged()); m != nil {
			pid, _ = strconv.Atoi(m[1])
		}
		return pid > 0
	})
	return pid
}

// gone waits until there is no process of this number: neither alive nor unburied.
func (s *stage) gone(pid int) {
	s.Helper()
	s.await(fmt.Sprint("the end of process ", pid), func() bool { return syscall.Kill(pid, 0) != nil })
}

// lines counts those of a file.
func (s *stage) lines(path string) int {
	b, _ := os.ReadFile(path) // not there yet: none
	return strings.Count(string(b), "\n")
}

// buffer keeps log lines.
type buffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *buffer) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
