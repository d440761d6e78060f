//go:build unix

package exec_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/exec"
)

func TestAProgram(t *testing.T) {
	t.Run("what it tells is stored in order, and it stops when asked", func(t *testing.T) {
		s := newStage(t)
		r := s.run("fake").connected()
		s.keeps("-000001", "-000002", "-000003", "-000004", "-000005")
		if got := string(s.memory.Cursor()); got != `{"exec":"-000005"}` {
			t.Errorf("got the cursor %s, want that of the last event", got)
		}
		r.stops(channel.ErrDraining)
	})

	t.Run("it has its config, its cursor and its environment, and nothing of ours", func(t *testing.T) {
		t.Setenv("SECRET_OF_OTHERS", "x")
		s := newStage(t)
		s.env["COLOR"], s.config["room"] = "blue", "kitchen"
		for run, cursor := range []string{"", "here"} {
			r := s.run("tells").connected()
			s.await("the event", func() bool { return len(s.memory.Events()) == 1 })
			r.stops(channel.ErrReplaced)
			var got struct {
				Names, Argv                 []string
				Color, Installation, Cursor string
				Config                      map[string]string
			}
			if err := json.Unmarshal(s.memory.Events()[0].Raw, &got); err != nil {
				t.Fatal(err)
			}
			if got.Color != "blue" || got.Installation != "bench" || got.Config["room"] != "kitchen" || got.Cursor != cursor || len(got.Argv) != 2 || got.Argv[1] != "-puppet" {
				t.Errorf("run %d: got %+v, want its own", run, got)
			}
			for _, name := range []string{"SECRET_OF_OTHERS", "CI"} {
				if slices.Contains(got.Names, name) {
					t.Errorf("got %s in its environment, want nothing of ours", name)
				}
			}
			if !slices.Contains(got.Names, "PATH") || !slices.Contains(got.Names, "TOKEN") {
				t.Errorf("got %q, want PATH and TOKEN", got.Names)
			}
			s.memory = channeltest.NewMemory()
			if err := channel.NewLink(channeltest.NewBench(nil, s.memory)).Accept(t.Context(), channel.Batch{Cursor: []byte(`{"exec":"here"}`)}); err != nil {
				t.Fatal(err)
			}
		}
	})

	t.Run("another type's cursor is none", func(t *testing.T) {
		s := newStage(t)
		if err := channel.NewLink(channeltest.NewBench(nil, s.memory)).Accept(t.Context(), channel.Batch{Cursor: []byte(`{"seq":5}`)}); err != nil {
			t.Fatal(err)
		}
		r := s.run("tells").connected()
		s.await("the event", func() bool { return len(s.memory.Events()) == 1 })
		if raw := string(s.memory.Events()[0].Raw); !strings.Contains(raw, `"cursor":""`) {
			t.Errorf("got %s, want no cursor", raw)
		}
		r.stops(channel.ErrRemoved)
	})

	t.Run("its secret is nowhere", func(t *testing.T) {
		r := newStage(t).run("blabs")
		if exit := r.ends(channel.ClassRejected, "auth"); !strings.Contains(exit.Err.Error(), "refused [redacted]") {
			t.Errorf("got %v, want its words without the secret", exit.Err)
		}
		for _, want := range []string{"connecting with [redacted]", "token [redacted]"} {
			if !strings.Contains(r.Logged(), want) {
				t.Errorf("got no %q in the log", want)
			}
		}
	})

	t.Run("what it says after stop is stored", func(t *testing.T) {
		s := newStage(t)
		r := s.run("speaks after stop").connected()
		s.keeps("before")
		r.stops(channel.ErrDraining)
		s.keeps("before", "after")
		if got := string(s.memory.Cursor()); got != `{"exec":"the end"}` {
			t.Errorf("got the cursor %s, want the last one", got)
		}
	})

	t.Run("one that floods us, and does not read meanwhile, waits for the disk", func(t *testing.T) {
		s := newStage(t)
		s.config["progress"] = filepath.Join(s.dir, "progress")
		release := s.memory.Hold()
		defer release()
		r := s.run("floods").connected()
		var before, after runtime.MemStats
		runtime.GC() // else it depends on when the last one was
		runtime.ReadMemStats(&before)
		progress := func() (n int) {
			b, _ := os.ReadFile(s.config["progress"]) // not there yet: none
			_, _ = fmt.Sscan(string(b), &n)
			return n
		}
		last, since := -1, time.Now()
		s.await("its standstill", func() bool {
			if n := progress(); n != last || n == 0 {
				last, since = n, time.Now()
			}
			return time.Since(since) > 500*time.Millisecond
		})
		runtime.GC()
		runtime.ReadMemStats(&after)
		// Two commits, the pipe's 64 kB and the buffers on its way are under 1,500 lines
		// of 240 bytes.
		if last <= 0 || last > 1500 {
			t.Errorf("got %d lines written while the disk hangs, want some and at most 1500", last)
		}
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
			t.Errorf("got %d bytes more in memory, want at most 8 MiB", grown)
		}
		release()
		s.await("every event", func() bool { return s.memory.Has("9999") })
		r.stops(channel.ErrDraining)
		for n, id := range s.kept() {
			if id != fmt.Sprint(n) {
				t.Fatalf("got event %s in the place of %d", id, n)
			}
		}
	})

	t.Run("its end leaves no descriptor open", func(t *testing.T) {
		open := func() int {
			files, _ := os.ReadDir("/proc/self/fd") // where there is none, there is nothing to count
			return len(files)
		}
		s := newStage(t)
		s.run("crashes").ends(channel.Transient, "exit_1") // what is opened once and kept
		before := open()
		for range 5 {
			s.run("crashes").ends(channel.Transient, "exit_1")
		}
		s.await("the descriptors closed", func() bool { return open() <= before })
	})

	t.Run("one that floods the log is cut short, and told", func(t *testing.T) {
		s := newStage(t)
		r := s.run("floods the log").connected()
		s.keeps("done")
		r.stops(channel.ErrDraining)
		if n := strings.Count(r.Logged(), "\n"); n > 1000 {
			t.Errorf("got %d lines in the log, want at most 1000 of 20000", n)
		}
	})
}

func TestTheEndOfAProgram(t *testing.T) {
	hello := `{"hello":{"protocol":1}}`
	for name, c := range map[string]struct {
		status, say, stderr string
		class               channel.Class
		code, words         string
	}{
		"0":                        {"0", hello, "", channel.Transient, "exit_0", "exit status 0"},
		"another":                  {"3", hello, "no route to host", channel.Transient, "exit_3", "exit status 3; its last words: no route to host"},
		"before it said hello":     {"1", "", "cannot find module x", channel.Transient, "exit_1", "cannot find module x"},
		"75 with retry_after":      {"75", hello + "\n" + `{"status":{"text":"slow down","retry_after":42.5}}`, "", channel.ClassRateLimited, "rate_limited", "slow down"},
		"75 without":               {"75", hello, "", channel.Transient, "exit_75", "exit status 75"},
		"75 with an endless wait":  {"75", hello + "\n" + `{"status":{"retry_after":1e300}}`, "", channel.ClassRateLimited, "rate_limited", ""},
		"77":                       {"77", hello + "\n" + `{"status":{"state":"auth","text":"invalid token"}}`, "", channel.ClassRejected, "auth", "invalid token; check env"},
		"78":                       {"78", hello, "config.room is missing", channel.ClassRejected, "config", "config.room is missing; check command, env and config"},
		"77 before it could start": {"77", "", "", channel.ClassRejected, "auth", "exit status 77"},
	} {
		t.Run("with status "+name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.config["status"], s.config["say"], s.config["stderr"] = c.status, c.say, c.stderr
			exit := s.run("exits").ends(c.class, c.code)
			if !strings.Contains(exit.Err.Error(), c.words) {
				t.Errorf("got %q, want %q in it", exit.Err, c.words)
			}
			if c.status == "75" && c.class == channel.ClassRateLimited && exit.After != 42500*time.Millisecond && exit.After != 24*time.Hour {
				t.Errorf("got a wait of %s, want what it said, and at most a day", exit.After)
			}
		})
	}

	t.Run("by a signal", func(t *testing.T) {
		exit := newStage(t).run("signals itself").ends(channel.Transient, "killed")
		if !strings.Contains(exit.Err.Error(), "signal: killed") {
			t.Errorf("got %v, want the signal", exit.Err)
		}
	})

	t.Run("keeps all that it has written", func(t *testing.T) {
		s := newStage(t)
		s.run("crashes").ends(channel.Transient, "exit_1")
		s.keeps("a", "b", "c")
	})

	t.Run("within a line does not take the line", func(t *testing.T) {
		s := newStage(t)
		r := s.run("half a line")
		r.ends(channel.Transient, "exit_0")
		s.keeps("whole")
		if len(r.notices("half_line")) != 1 {
			t.Errorf("got %v, want to be told", r.Notices())
		}
	})

	t.Run("is that of its offspring, which holds its output open", func(t *testing.T) {
		s := newStage(t)
		r := s.run("abandons")
		pid := r.offspring()
		r.ends(channel.Transient, "exit_3")
		s.keeps("1")
		s.gone(pid)
	})
}

func TestWhatIsNotTheProtocol(t *testing.T) {
	t.Run("a line of 2 MiB is dropped, and one of 1 MiB is kept", func(t *testing.T) {
		s := newStage(t)
		r := s.run("long line").connected()
		s.keeps("before", "largest", "after")
		r.stops(channel.ErrDraining)
		if n := r.notices("line_too_large"); len(n) != 1 || !strings.Contains(n[0], "2097") {
			t.Errorf("got %q, want to be told once, with its size", n)
		}
	})

	t.Run("garbage is dropped, told once, and ends nothing", func(t *testing.T) {
		s := newStage(t)
		r := s.run("garbage").connected()
		s.await("the last event", func() bool { return slices.Contains(s.kept(), "sound") })
		r.stops(channel.ErrDraining)
		if n := r.notices("not_a_message"); len(n) != 1 || !strings.Contains(n[0], "Welcome!") {
			t.Errorf("got %q, want to be told once, with the line", n)
		}
		events := s.memory.Events()
		if len(events) != 4 || events[0].ID != "odd" || events[0].Type != "raw" || !strings.Contains(string(events[0].Raw), "tomorrow") {
			t.Errorf("got %+v, want an event that has not the form of one kept as it is", events)
		}
		if last := events[len(events)-1]; last.Text != "caf\uFFFD" {
			t.Errorf("got %q, want what is no UTF-8 replaced", last.Text)
		}
	})

	for name, c := range map[string]struct {
		code, words string
		class       channel.Class
		times       exec.Times // no shorter than what must come before on a busy machine
	}{
		"no hello":            {"no_hello", "did not say hello within 300ms", channel.Transient, exec.Times{Hello: 300 * time.Millisecond}},
		"only garbage":        {"no_hello", "is not the protocol of exec", channel.Transient, exec.Times{Hello: 5 * time.Second}},
		"no ready":            {"not_ready", "was not ready within 400ms", channel.Transient, exec.Times{Ready: 400 * time.Millisecond}},
		"mute":                {"silent", "said nothing for 300ms", channel.Transient, exec.Times{Ping: 100 * time.Millisecond, Dead: 300 * time.Millisecond}},
		"event first":         {"protocol", "said event before hello", channel.Transient, exec.Times{}},
		"a markup of its own": {"protocol", "hello: writes: want plain, markdown", channel.ClassRejected, exec.Times{}},
		"another protocol":    {"protocol", "speaks protocol 2 of exec", channel.ClassRejected, exec.Times{}},
		"closes stdout":       {"stdout_closed", "closed its standard output", channel.Transient, exec.Times{Exit: 300 * time.Millisecond}},
	} {
		t.Run(name+" ends it", func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.times = c.times
			exit := s.run(name).ends(c.class, c.code)
			if !strings.Contains(exit.Err.Error(), c.words) {
				t.Errorf("got %q, want %q in it", exit.Err, c.words)
			}
		})
	}

	t.Run("a status gains time to be ready", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		s.times = exec.Times{Ready: 3 * time.Second} // it takes four, and says so ten times a second
		r := s.run("ready at last").connected()
		if got := r.Readies()[0].Identity; got != "bot" {
			t.Errorf("got %q, want who it is", got)
		}
		if n := r.notices("waiting"); len(n) != 1 || n[0] != "scan the code" {
			t.Errorf("got %q, want its status told once", n)
		}
		r.stops(channel.ErrDraining)
	})

	t.Run("one that answers pings lives", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		s.times = exec.Times{Ping: 100 * time.Millisecond, Dead: 4 * time.Second}
		r := s.run("quiet").connected()
		_, first := r.Alives()
		s.await("signs of life after its bound", func() bool { _, at := r.Alives(); return at.Sub(first) > s.times.Dead })
		r.stops(channel.ErrDraining)
	})
}

func TestAProgramThatDoesNotWantToGo(t *testing.T) {
	t.Run("one that ignores stop is asked by a signal", func(t *testing.T) {
		s := newStage(t)
		r := s.run("goes when asked twice").connected()
		r.stops(channel.ErrDraining)
		s.keeps("last words")
	})

	for _, name := range []string{"stubborn", "forks", "leaves its session"} {
		for how, end := range map[string]func(*term){
			"when it is to stop":     func(r *term) { r.stops(channel.ErrDraining) },
			"when the lease is lost": func(r *term) { r.Kill() },
		} {
			t.Run(name+": nothing is left "+how, func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				r := s.run(name).connected()
				pid := 0
				if name != "stubborn" {
					pid = r.offspring()
				}
				began := time.Now()
				end(r)
				<-r.Done()
				if took := time.Since(began); took > channel.Goodbye+busy {
					t.Errorf("got an end that took %s, want less than %s", took, channel.Goodbye)
				}
				if pid > 0 {
					s.gone(pid)
				}
				r.sane()
			})
		}
	}

	t.Run("one that is silent is killed at once", func(t *testing.T) {
		s := newStage(t)
		s.times = exec.Times{Ping: 100 * time.Millisecond, Dead: 300 * time.Millisecond, Leave: time.Hour}
		s.run("mute").ends(channel.Transient, "silent")
	})
}

func TestWhatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		command string
		class   channel.Class
		code    string
	}{
		"a name that is not in the PATH": {"leasehold-has-no-such-program", channel.ClassRejected, "command"},
		"a path that leads nowhere":      {filepath.Join(dir, "none"), channel.ClassRejected, "command"},
		"a folder":                       {dir, channel.ClassRejected, "command"},
		"a file that is no program":      {text, channel.Transient, "start"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(map[string]any{"command": []string{c.command}})
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := exec.Spec(os.Environ()).Decode(raw, nil)
			if err != nil {
				t.Fatal(err)
			}
			ch, err := cfg.Build(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			b := channeltest.NewBench(nil, nil)
			b.Start(t.Context(), ch)
			if got := channel.Classify(b.Wait()); got.Class != c.class || got.Code != c.code {
				t.Errorf("got %s %q (%v), want %s %q", got.Class, got.Code, got.Err, c.class, c.code)
			}
		})
	}
}
