package app

import (
	"slices"
	"strings"
	"testing"

	"leasehold/config"
)

func TestCircles(t *testing.T) {
	to := func(name, through, conversation string, match config.Match) config.Target {
		return config.Target{Name: name, Type: "message", Installation: through, Conversation: conversation, Events: []string{"*"}, Match: match}
	}
	two := func(change func(c *config.Config)) *config.Config {
		c := &config.Config{
			Installations: []config.Installation{{ID: "a", Type: "x", Targets: []string{"one"}}, {ID: "b", Type: "y", Targets: []string{"two"}}},
			Targets:       []config.Target{to("one", "b", "CB", nil), to("two", "a", "CA", nil), {Name: "app", Type: "http", Events: []string{"*"}}},
		}
		change(c)
		return c
	}
	for _, c := range []struct {
		what   string
		change func(c *config.Config)
		want   string // the names on the way
	}{
		{"two targets that post to each other's installations are one", func(*config.Config) {}, "one two"},
		{"targets that get everything by default are", func(c *config.Config) { c.Installations[0].Targets, c.Installations[1].Targets = nil, nil }, "one two"},
		{"the default targets count", func(c *config.Config) { c.Installations[1].Targets, c.Delivery.Targets = nil, []string{"app"} }, ""},
		{"an installation whose events go nowhere ends it", func(c *config.Config) { c.Installations[1].Targets = []string{} }, ""},
		{"another conversation ends it", func(c *config.Config) { c.Targets[1].Match = config.Match{"conversation.id": {"other", "D*"}} }, ""},
		{"the same conversation does not", func(c *config.Config) { c.Targets[1].Match = config.Match{"conversation.id": {"C*"}} }, "one two"},
		{"people alone end it", func(c *config.Config) { c.Targets[0].Match = config.Match{"sender.bot": {"false"}} }, ""},
		{"another installation ends it", func(c *config.Config) { c.Targets[1].Match = config.Match{"installation.id": {"c"}} }, ""},
		{"system events alone end it", func(c *config.Config) { c.Targets[1].Events = []string{"system.*"} }, ""},
		{"a target that gets its own installation's events is one by itself", func(c *config.Config) {
			c.Installations[1].Targets = []string{"one"}
		}, "one"},
		{"one that names its conversations is none", func(c *config.Config) {
			c.Installations[1].Targets, c.Targets[0].Match = []string{"one"}, config.Match{"conversation.id": {"CX"}}
		}, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			cfg := two(c.change)
			var got []string
			for _, way := range circles(cfg) {
				for _, x := range way {
					got = append(got, x.Name)
				}
			}
			if want := strings.Fields(c.want); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if names := circling(cfg); len(names) != len(got) {
				t.Errorf("got %v held back, want %v", names, got)
			}
		})
	}
	t.Run("the warning names the way round and the way out", func(t *testing.T) {
		got := circleWarnings(two(func(*config.Config) {}))
		want := "target one posts through b, whose events go to target two, which posts through a, whose events go to target one: "
		if len(got) != 1 || !strings.HasPrefix(got[0], want) || !strings.Contains(got[0], "match = {") || !strings.Contains(got[0], "targets = […]") {
			t.Errorf("got %q, want %q and the way out", got, want)
		}
	})
}
