package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/delivery"
	"leasehold/engine"
	"leasehold/internal/redact"
	"leasehold/store/sqlite"
)

// book keeps what a chore notes.
type book struct {
	admin.Store
	runs   []admin.TaskRun
	refuse error
}

func (b *book) SaveTaskRun(_ context.Context, r admin.TaskRun) error {
	b.runs = append(b.runs, r)
	return b.refuse
}

func TestChore(t *testing.T) {
	t.Run("work and failures are noted, idle cycles are not, and a recovery is", func(t *testing.T) {
		b := &book{}
		var done string
		var fails error
		c := &chore{name: "sweeper", store: b, do: func(context.Context) (string, error) { return done, fails }}
		step := func(word string, err error) {
			done, fails = word, err
			if got := c.cycle(t.Context()); !errors.Is(got, err) {
				t.Errorf("cycle: got %v, want %v", got, err)
			}
		}
		broke := errors.New("disk")
		step("", nil)
		step("deleted 3 events", nil)
		step("", broke)
		step("deleted 1 events", broke)
		step("", nil)
		step("", nil)
		var got []string
		for _, r := range b.runs {
			got = append(got, fmt.Sprintf("%d %s|%s|%v", r.Failures, r.LastError, r.Result, r.LastSuccess.IsZero()))
		}
		want := []string{"0 |deleted 3 events|false", "1 disk||true", "2 disk|deleted 1 events|true", "0 ||false"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})

	t.Run("what another node runs for all is left to it, and not noted over it", func(t *testing.T) {
		b := &book{}
		did, mine := 0, false
		c := &chore{
			name: "sweeper", store: b, do: func(context.Context) (string, error) { did++; return "deleted 3 events", nil },
			turn: func(_ context.Context, task string) (admin.TaskHolder, bool, error) {
				return admin.TaskHolder{Task: task, Session: "session", Epoch: 7}, mine, nil
			},
		}
		if err := c.cycle(t.Context()); err != nil || did > 0 || len(b.runs) > 0 {
			t.Errorf("another's turn: got %v, %d runs and %v noted, want nothing done", err, did, b.runs)
		}
		mine, b.refuse = true, engine.ErrFenced // it was taken over meanwhile
		if err := c.cycle(t.Context()); err != nil || did != 1 {
			t.Errorf("our turn: got %v and %d runs, want one", err, did)
		}
		if len(b.runs) != 1 || b.runs[0].Session != "session" || b.runs[0].Epoch != 7 {
			t.Errorf("got %+v noted, want it with the token of its holder", b.runs)
		}
		c.turn = func(context.Context, string) (admin.TaskHolder, bool, error) {
			return admin.TaskHolder{}, false, errors.New("no answer")
		}
		if err := c.cycle(t.Context()); err == nil || did != 1 {
			t.Errorf("nobody knows whose turn: got %v and %d runs, want the error and no work", err, did)
		}
	})

	t.Run("a shutdown is no failure", func(t *testing.T) {
		b := &book{}
		ctx, cancel := context.WithCancel(t.Context())
		c := &chore{name: "sweeper", store: b, do: func(ctx context.Context) (string, error) { cancel(); return "", ctx.Err() }}
		if err := c.cycle(ctx); !errors.Is(err, context.Canceled) || len(b.runs) > 0 {
			t.Errorf("got %v and %v, want the cancellation and no note", err, b.runs)
		}
	})
}

func TestRoutes(t *testing.T) {
	open := func(t *testing.T) *sqlite.Store {
		t.Helper()
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "leasehold.db"), sqlite.Options{ReserveBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	put := func(t *testing.T, s *sqlite.Store, id string, targets ...string) {
		t.Helper()
		row := admin.Installation{ID: id, Type: "x", Config: json.RawMessage("{}"), Enabled: true, Source: admin.SourceAPI, Targets: targets, Fingerprint: id}
		if _, err := s.PutInstallation(t.Context(), row, 0); err != nil {
			t.Fatal(err)
		}
	}
	quiet := slog.New(slog.DiscardHandler)

	t.Run("a change is seen by the first event after it", func(t *testing.T) {
		s := open(t)
		r := &routes{store: s, changed: s.Watch(t.Context()), log: quiet}
		put(t, s, "a", "app")
		if got := r.of("a"); !slices.Equal(got, []string{"app"}) {
			t.Errorf("a: got %v, want [app]", got)
		}
		if got := r.of("b"); got != nil {
			t.Errorf("b before it is there: got %v, want none", got)
		}
		put(t, s, "b", "log", "app")
		if got := r.of("b"); !slices.Equal(got, []string{"log", "app"}) {
			t.Errorf("b: got %v, want [log app]", got)
		}
	})

	t.Run("a list without targets is nowhere, no list is the default", func(t *testing.T) {
		s := open(t)
		put(t, s, "named", "app")
		put(t, s, "plain")
		put(t, s, "mute", []string{}...)
		c := config.Default()
		targets := []delivery.Target{{Name: "app", Kind: "log"}, {Name: "log", Kind: "log"}}
		ask := func() string {
			r := &routes{store: s, changed: s.Watch(t.Context()), log: quiet}
			d, err := delivery.New(nil, targets, delivery.Options{Default: c.Delivery.Targets, Route: r.of})
			if err != nil {
				t.Fatal(err)
			}
			router := newRouter(c, d, r)
			var got []string
			for _, id := range []string{"mute", "plain", "named"} {
				got = append(got, fmt.Sprint(router.Targets(channel.Term{Installation: id}, &channel.Event{Type: "message"})))
			}
			rider := router.Targets(channel.Term{Installation: "plain"}, &channel.Event{Type: "message", Installation: "mute"})
			return strings.Join(append(got, fmt.Sprint(rider)), " ")
		}
		if got, want := ask(), "[] [app log] [app] []"; got != want {
			t.Errorf("delivery.targets left out: got %s, want %s", got, want)
		}
		c.Delivery.Targets = []string{"log"}
		if got, want := ask(), "[] [log] [app] []"; got != want {
			t.Errorf("delivery.targets = [log]: got %s, want %s", got, want)
		}
		c.Delivery.Targets = []string{}
		if got, want := ask(), "[] [] [app] []"; got != want {
			t.Errorf("delivery.targets = []: got %s, want %s", got, want)
		}
	})
}

func TestTargets(t *testing.T) {
	t.Run("a target whose header has no value is down, and says which", func(t *testing.T) {
		c := config.Default()
		c.Targets = []config.Target{{Name: "app", Type: "http", URL: "http://127.0.0.1:1", Headers: map[string]config.Value{
			"Authorization": {Reference: config.Reference{Kind: "env", Name: "X"}}, "X-Plain": {Literal: "a"},
		}}}
		resolve := func(string, string) (string, error) { return "", errors.New("environment variable X is not set") }
		sink := targetsOf(c, poster{}, resolve)[0].Sink
		if sink == nil {
			t.Fatal("got a working target, want one that is down")
		}
		r := sink.Deliver(t.Context(), delivery.Delivery{})
		if r.Outcome != delivery.Down || r.Reason != "headers.Authorization: environment variable X is not set" || !strings.HasPrefix(r.NextStep, "correct that") {
			t.Errorf("got %+v, want down with the key and the variable", r)
		}
	})
}

func TestDifferences(t *testing.T) {
	row := func(id, config, source string) admin.Installation {
		return admin.Installation{ID: id, Type: "x", Config: json.RawMessage(config), Source: source, Enabled: true}
	}
	have := []admin.Installation{row("same", `{"a":1,"b":2}`, "file"), row("changed", `{"a":1}`, "file"), row("gone", `{}`, "file"), row("api", `{}`, "api")}
	want := []admin.Installation{row("same", `{ "b":2, "a":1 }`, "file"), row("changed", `{"a":2}`, "file"), row("new", `{}`, "file")}
	added, changed, removed := differences(want, have)
	if got := fmt.Sprint(added, changed, removed); got != "[new] [changed] [gone]" {
		t.Errorf("got %s, want [new] [changed] [gone]", got)
	}
}

func TestTable(t *testing.T) {
	t.Run("columns are aligned, and nothing that a stranger wrote moves the cursor", func(t *testing.T) {
		tab := newTable("A", "LONGER", "C")
		tab.row("wörld", "x", "evil\x1b[2J\nname")
		tab.row("", "yy", "z")
		var b bytes.Buffer
		tab.write(&b)
		want := "A      LONGER  C\nwörld  x       evil·[2J name\n-      yy      z\n"
		if got := b.String(); got != want {
			t.Errorf("got\n%q, want\n%q", got, want)
		}
	})
}

func TestResolver(t *testing.T) {
	t.Run("what is resolved is taken out of the log from then on, and a short one is told once", func(t *testing.T) {
		p := &program{Options: Options{Env: []string{"LONG=a-long-secret", "SHORT=abc"}}, redact: redact.New()}
		var b bytes.Buffer
		log := slog.New(p.redact.Handler(slog.NewTextHandler(&b, nil)))
		resolve := p.resolver(log)
		for range 2 {
			for _, name := range []string{"LONG", "SHORT"} {
				if _, err := resolve("env", name); err != nil {
					t.Fatal(err)
				}
			}
		}
		log.InfoContext(t.Context(), "x", "error", errors.New("token a-long-secret"))
		if got := b.String(); strings.Contains(got, "a-long-secret") || strings.Count(got, "too short") != 1 || !strings.Contains(got, "name=SHORT") {
			t.Errorf("got %s, want one warning that names SHORT, and no secret", got)
		}
	})
}

func TestLogger(t *testing.T) {
	t.Run("every line is in UTC, as text and as JSON", func(t *testing.T) {
		at := time.Date(2026, 11, 30, 1, 2, 3, 0, time.FixedZone("far", 5*3600))
		for format, want := range map[string]string{"text": "20:02:03.000Z", "json": `"time":"2026-11-29T20:02:03Z"`, "auto": `"time":"2026-11-29T20:02:03Z"`} {
			var b bytes.Buffer
			p := &program{redact: redact.New()}
			log := p.logger(config.Log{Level: "info", Format: format}, &b)
			if err := log.Handler().Handle(t.Context(), slog.NewRecord(at, slog.LevelInfo, "x", 0)); err != nil {
				t.Fatal(err)
			}
			if got := b.String(); !strings.Contains(got, want) || strings.Contains(got, "\x1b") {
				t.Errorf("%s: got %q, want %s in it and no color: it is no terminal", format, got, want)
			}
		}
	})
}

func TestBackupChore(t *testing.T) {
	for name, c := range map[string]struct {
		is   config.Backup
		look time.Duration
	}{
		"off":              {config.Backup{}, time.Hour},
		"a folder alone":   {config.Backup{Dir: "/mnt/usb"}, time.Hour},
		"once a week":      {config.Backup{Every: config.Duration(7 * 24 * time.Hour)}, time.Hour},
		"every 10 minutes": {config.Backup{Every: config.Duration(10 * time.Minute)}, 10 * time.Minute},
	} {
		t.Run("it looks as often as a backup may be due, once an hour at least: "+name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Tasks.Backup = c.is
			if got := backupChore(func() *config.Config { return cfg }, nil, nil).every(cfg); got != c.look {
				t.Errorf("got a look every %v, want every %v", got, c.look)
			}
		})
	}
	t.Run("off, it makes none", func(t *testing.T) {
		dir := t.TempDir()
		cfg := config.Default()
		cfg.Node.DataDir = config.Path(dir)
		done, err := backupChore(func() *config.Config { return cfg }, nil, nil).do(t.Context())
		_, missing := os.Lstat(filepath.Join(dir, "backups"))
		if done != "" || err != nil || missing == nil {
			t.Errorf("got %q, %v, want nothing", done, err)
		}
	})
}
