package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const exampleFile = "../config.example.toml"

// example loads a text from a file beside the repository's example. The types' own
// keys are checked where the types are known, in app.
func example(t *testing.T, text string) *Config {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "leasehold.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	src := testSource(dir)
	src.Types = nil
	c, err := load(src, testHost(dir))
	if err != nil {
		t.Fatalf("got faults, want none:\n%v", err)
	}
	return c
}

// commented is a key or a header that is commented out.
var commented = regexp.MustCompile(`(?m)^# (\[[a-z_.\[\]]+\]|[a-z_]+ = .*)$`)

func readExample(t *testing.T) (asItStands, uncommented string) {
	t.Helper()
	b, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), commented.ReplaceAllString(string(b), "$1")
}

// keysOf lists the paths of all keys of a version's config, those of a list's
// element once, and the default that each key's tag shows.
func keysOf(t reflect.Type, path string, later bool, visit func(path string, f field, later bool)) {
	for _, f := range fields(t) {
		at, late := dot(path, f.name), later || f.later()
		switch {
		case shapeOf(f.typ) == tableShape:
			keysOf(f.typ, at, late, visit)
		case f.typ.Kind() == reflect.Slice && shapeOf(f.typ.Elem()) == tableShape:
			keysOf(f.typ.Elem(), at, late, visit)
		case f.typ == rawType:
		default:
			visit(at, f, late)
		}
	}
}

// shown collects the keys of a tree as keysOf names them.
func shown(n *node, path string, into map[string][]*node) {
	for _, e := range n.entries {
		at := dot(path, e.key)
		switch {
		case at == "installation.config":
		case e.value.kind == tableKind && e.value.made != inlined:
			shown(e.value, at, into)
		case e.value.made == elements:
			for _, item := range e.value.items {
				shown(item, at, into)
			}
		default:
			into[at] = append(into[at], e.value)
		}
	}
}

func TestTheExampleFile(t *testing.T) {
	text, uncommented := readExample(t)
	tree, faults := parse(exampleFile, []byte(uncommented))
	if len(faults) > 0 {
		t.Fatalf("got %v, want a file that parses", faults)
	}
	there := map[string][]*node{}
	shown(tree, "", there)

	t.Run("every key of this version is shown and no other", func(t *testing.T) {
		var want, got []string
		keysOf(configType, "", false, func(path string, _ field, later bool) {
			if !later {
				want = append(want, path)
			}
		})
		for path := range there {
			got = append(got, path)
		}
		slices.Sort(want)
		slices.Sort(got)
		sameLines(t, got, want)
	})

	t.Run("a shown default is the default", func(t *testing.T) {
		compared := 0
		keysOf(configType, "", false, func(path string, f field, later bool) {
			def, ok := f.tag.Lookup("default")
			if !ok || later {
				return
			}
			got, want := reflect.New(f.typ).Elem(), reflect.New(f.typ).Elem()
			w := newWalker(Source{}, testHost("/"))
			nodes := there[path] // the last is the one that shows the default
			w.value(nodes[len(nodes)-1], got, path, f.tag)
			n, _ := literalNode(f.typ, f.name, def, Pos{})
			w.value(n, want, "default", f.tag)
			if len(w.faults) > 0 || !reflect.DeepEqual(got.Interface(), want.Interface()) {
				t.Errorf("%s: got %v, want %v (%v)", path, got, want, w.faults)
			}
			compared++
		})
		if compared < 20 {
			t.Errorf("got %d defaults compared, want all of them", compared)
		}
	})

	t.Run("every default tag reaches Default", func(t *testing.T) {
		c := Default()
		for _, x := range []struct{ got, want any }{
			{c.Store.URL.Literal, "sqlite:leasehold.db"},
			{c.Lease.TTL.String(), "30s"},
			{c.Retention.Dead.String(), "30d"},
			{c.Tasks.Sweeper.Batch, 500},
			{c.Connect.PerTypeRate, 50.0},
		} {
			if x.got != x.want {
				t.Errorf("got %v, want %v", x.got, x.want)
			}
		}
		if err := c.Validate(); err != nil {
			t.Errorf("got %v, want defaults without fault", err)
		}
	})

	t.Run("as it stands it is the default, a log target and a heartbeat", func(t *testing.T) {
		got, want := example(t, text), example(t, "")
		if len(got.Targets) != 1 || got.Targets[0].Type != "log" || len(got.Installations) != 1 || got.Installations[0].Type != "heartbeat" {
			t.Fatalf("got %+v and %+v, want one log target and one heartbeat", got.Targets, got.Installations)
		}
		if !slices.Equal(got.Delivery.Targets, []string{"log"}) {
			t.Errorf("got delivery.targets %v, want every target", got.Delivery.Targets)
		}
		got.Targets, got.Installations, got.Delivery.Targets = nil, nil, nil
		got.Files, want.Files = nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})

	t.Run("with everything uncommented it loads", func(t *testing.T) {
		c := example(t, uncommented)
		last := c.Installations[len(c.Installations)-1]
		if len(c.Targets) != 5 || len(c.Installations) < 4 || last.Via != "canary" {
			t.Errorf("got %d targets, %d installations and last %q, want 5, at least 4 and the rider", len(c.Targets), len(c.Installations), last.ID)
		}
	})

	t.Run("every key has a sentence above it", func(t *testing.T) {
		lines := strings.Split(text, "\n")
		for path, nodes := range there {
			if !slices.ContainsFunc(nodes, func(n *node) bool {
				above := lines[n.pos.Line-2]
				return strings.HasPrefix(above, "# ") && !commented.MatchString(above)
			}) {
				t.Errorf("%s: got no sentence above it, want one", path)
			}
		}
	})
}
