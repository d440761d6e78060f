package app

import (
	"context"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/internal/fault"
	"leasehold/internal/redact"
	"leasehold/store/sqlite"
)

func TestApply(t *testing.T) {
	type world struct {
		p *program
		a *admin.Client
		s *sqlite.Store
	}
	open := func(t *testing.T) world {
		t.Helper()
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "leasehold.db"), sqlite.Options{ReserveBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		p := &program{Options: Options{Types: Builtin()}, redact: redact.New()}
		types, err := channel.NewTypes(nil, p.Types...)
		if err != nil {
			t.Fatal(err)
		}
		o := p.answers(fixed(config.Default()), admin.Options{Store: s, Types: types, Mode: admin.Stopped})
		a := admin.NewClient(admin.InProcess(admin.New(o)))
		t.Cleanup(a.Close)
		return world{p, a, s}
	}
	plan := func(t *testing.T, w world, text string, prune bool) (steps, error) {
		t.Helper()
		w.p.Stdin = strings.NewReader(text)
		file, types, err := w.p.declaration(t.Context(), "-")
		if err != nil {
			return steps{}, err
		}
		have, err := everyInstallation(t.Context(), w.a, url.Values{})
		if err != nil {
			t.Fatal(err)
		}
		return follow(file, types, have, prune)
	}
	must := func(t *testing.T, l steps, err error) steps {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	const two = "[[installation]]\nid = \"a\"\ntype = \"heartbeat\"\nconfig = { every = \"1h\" }\n[[installation]]\nid = \"b\"\ntype = \"heartbeat\"\nconfig = { every = \"1h\" }\n"
	carry := func(ctx context.Context, t *testing.T, w world, text string, prune bool) outcome {
		t.Helper()
		l, err := plan(t, w, text, prune)
		o, err := must(t, l, err).carryOut(ctx, w.a)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}

	t.Run("a row that somebody changed meanwhile is not overwritten, and what was done before it is told", func(t *testing.T) {
		w := open(t)
		carry(t.Context(), t, w, two, false)
		l, err := plan(t, w, strings.ReplaceAll(two, "1h", "2h"), false)
		l = must(t, l, err)
		if err := w.s.SetEnabled(t.Context(), "b", false); err != nil {
			t.Fatal(err)
		}
		o, err := l.carryOut(t.Context(), w.a)
		const want = "installation b: put installation: put installation b: installation b was changed meanwhile: it has revision 2, not 1; apply stopped there, with 1 of 2 changes done; run it again"
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s …", err, want)
		}
		if got := strings.Join(o.Changed, " "); got != "a" {
			t.Errorf("changed: got %q, want a", got)
		}
		b, err := w.s.Installation(t.Context(), "b")
		if err != nil || b.Enabled || strings.Contains(string(b.Config), "2h") {
			t.Errorf("got %+v, %v, want b as the other one left it", b, err)
		}
	})

	t.Run("nor is a target that somebody changed meanwhile", func(t *testing.T) {
		w := open(t)
		const hook = "[[target]]\nname = \"hook\"\ntype = \"http\"\nurl = \"http://127.0.0.1:9\"\n"
		w.p.Stdin = strings.NewReader(hook + "timeout = \"9s\"\n")
		file, _, err := w.p.declaration(t.Context(), "-")
		if err != nil {
			t.Fatal(err)
		}
		keys := func(timeout string) map[string]any {
			return map[string]any{"type": "http", "url": "http://127.0.0.1:9", "timeout": timeout}
		}
		if _, err := w.a.PutTarget(t.Context(), "hook", keys("5s"), 0); err != nil {
			t.Fatal(err)
		}
		have, err := everyTarget(t.Context(), w.a)
		if err != nil {
			t.Fatal(err)
		}
		targets, err := followTargets(file, have, nil, true, false)
		if err != nil || targets.count() != 1 {
			t.Fatalf("got %+v, %v, want one change", targets, err)
		}
		if _, err := w.a.PutTarget(t.Context(), "hook", keys("7s"), 1); err != nil {
			t.Fatal(err)
		}
		o, err := steps{targets: targets}.carryOut(t.Context(), w.a)
		if err == nil || !strings.Contains(err.Error(), "it has revision 2, not 1; apply stopped there, with 0 of 1 changes done") || o.Targets.done() != 0 {
			t.Errorf("got %v, %+v, want it left as the other one made it", err, o)
		}
	})

	t.Run("a file without installations removes nothing, with prune or without", func(t *testing.T) {
		w := open(t)
		carry(t.Context(), t, w, two, false)
		if o := carry(t.Context(), t, w, "# none\n", false); len(o.Removed) != 0 {
			t.Errorf("without prune: got %v removed, want none", o.Removed)
		}
		if _, err := plan(t, w, "# none\n", true); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "would remove all 2") {
			t.Errorf("with prune: got %v, want it refused", err)
		}
	})

	t.Run("an account moves to another id in one apply", func(t *testing.T) {
		w := open(t)
		bot := func(id, enabled string) string {
			return "[[installation]]\nid = \"" + id + "\"\ntype = \"mqtt\"\nenabled = " + enabled + "\nconfig = { url = \"mqtt://127.0.0.1:1\", topics = [\"x\"], client_id = \"one\" }\n"
		}
		carry(t.Context(), t, w, bot("old", "true"), false)
		if o := carry(t.Context(), t, w, bot("new", "true"), true); len(o.Added) != 1 || len(o.Removed) != 1 {
			t.Errorf("another id: got %+v, want one added and one removed", o)
		}
		if o := carry(t.Context(), t, w, bot("other", "true")+bot("new", "false"), true); len(o.Added) != 1 || len(o.Changed) != 1 {
			t.Errorf("the old one disabled: got %+v, want one added and one changed", o)
		}
	})

	t.Run("a carrier comes before its riders, whatever the order of the file", func(t *testing.T) {
		put := []step{{id: "rider", via: "carrier"}, {id: "carrier"}}
		slices.SortStableFunc(put, inOrder)
		if put[0].id != "carrier" {
			t.Errorf("got %v, want the carrier first", put)
		}
	})

	t.Run("what is refused after a change was made is no mistake on the command line, which says that nothing was done", func(t *testing.T) {
		w := open(t)
		l, err := plan(t, w, two, false)
		l = must(t, l, err)
		l.put[1].in.Type = "nothing" // refused, as by a program with other types
		_, err = l.carryOut(t.Context(), w.a)
		p := &program{Options: Options{Stderr: new(strings.Builder)}, redact: redact.New()}
		if got := p.exit(asUsage(err)); got != fault.ExitConfig {
			t.Errorf("got exit code %d of %v, want %d", got, err, fault.ExitConfig)
		}
	})
}
