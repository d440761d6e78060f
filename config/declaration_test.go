package config_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"leasehold/config"
)

func TestDeclaration(t *testing.T) {
	load := func(text string, targets []string) (*config.Config, error) {
		return config.Declaration(config.Source{
			Path: "bots.toml", Text: []byte(text), Dir: t.TempDir(),
			Env:   []string{"LEASEHOLD_LEASE_TTL=nonsense"},
			Types: func(name string) (reflect.Type, bool) { return nil, name == "x" },
		}, targets)
	}
	faults := func(t *testing.T, err error, want ...string) {
		t.Helper()
		all, ok := errors.AsType[config.Faults](err)
		if !ok || all.Error() != strings.Join(want, "\n") {
			t.Errorf("got\n%v\nwant\n%s", err, strings.Join(want, "\n"))
		}
	}

	t.Run("nothing but installations and targets is read, and no variable adds to them", func(t *testing.T) {
		c, err := load("[[installation]]\nid = \"a\"\ntype = \"x\"\n", nil)
		if err != nil || len(c.Installations) != 1 || !c.Installations[0].Enabled {
			t.Fatalf("got %+v, %v, want the enabled installation a", c, err)
		}
		_, err = load("[node]\nname = \"n\"\n", nil)
		faults(t, err, "bots.toml:1:2: node: unknown key (known: installation, target)")
	})

	t.Run("targets are read as in a config, and installations may name them", func(t *testing.T) {
		const target = "[[target]]\nname = \"app\"\ntype = \"http\"\n"
		c, err := load(target+"url = \"http://localhost:1\"\n[[installation]]\nid = \"a\"\ntype = \"x\"\ntargets = [\"app\"]\n", []string{})
		if err != nil || len(c.Targets) != 1 || c.Targets[0].Timeout == 0 || c.Targets[0].Pos.Line != 1 {
			t.Errorf("got %+v, %v, want the target app with its defaults", c, err)
		}
		_, err = load(target+target, nil)
		faults(t, err, "bots.toml:1:3: target \"app\": url: is missing", "bots.toml:4:3: target \"app\": url: is missing",
			"bots.toml:5:8: target \"app\": name: is defined twice, first at bots.toml:1")
	})

	t.Run("all that is wrong is told at once, by position", func(t *testing.T) {
		_, err := load("[[installation]]\nid = \"a\"\ntype = \"x\"\ntargets = [\"ap\"]\nvia = \"a\"\n[[installation]]\nid = \"a\"\n", []string{"app"})
		all, ok := errors.AsType[config.Faults](err)
		if !ok || len(all) != 4 {
			t.Fatalf("got %v, want a fault of each: targets, via, no type, id twice", err)
		}
		for n, want := range []string{"bots.toml:4:12: ", "bots.toml:5:7: ", "bots.toml:6:3: ", "bots.toml:7:6: "} {
			if got := all[n].String(); !strings.HasPrefix(got, want) {
				t.Errorf("fault %d: got %q, want it at %s", n, got, want)
			}
		}
	})

	t.Run("what is no TOML is told beside the rest", func(t *testing.T) {
		_, err := load("[[installation]]\nid = \nkind = \"x\"\n", nil)
		if err == nil || !strings.Contains(err.Error(), "bots.toml:2:6: not TOML") || !strings.Contains(err.Error(), "bots.toml:3:1: ") {
			t.Errorf("got %v, want line 2 and line 3", err)
		}
	})

	t.Run("targets that are not known here are not checked, and none at all are", func(t *testing.T) {
		const text = "[[installation]]\nid = \"a\"\ntype = \"x\"\ntargets = [\"app\"]\n"
		if _, err := load(text, nil); err != nil {
			t.Errorf("got %v, want none", err)
		}
		_, err := load(text, []string{})
		faults(t, err, `bots.toml:4:12: installation "a": targets: target "app" is not defined (there is no [[target]])`)
	})

	t.Run("a carrier may be in the store alone", func(t *testing.T) {
		if _, err := load("[[installation]]\nid = \"a\"\ntype = \"x\"\nvia = \"elsewhere\"\n", nil); err != nil {
			t.Errorf("got %v, want none", err)
		}
	})
}
