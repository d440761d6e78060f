package delivery

import (
	"slices"
	"strings"
	"testing"

	"leasehold/channel"
	"leasehold/engine"
)

var _ engine.Holder = (*Dispatcher)(nil)

func TestTarget(t *testing.T) {
	t.Run("every fault is reported at once, by key, and none repeats an address", func(t *testing.T) {
		_, err := New(newOutbox(), []Target{
			{
				Name: "app", Kind: "http", URL: "ftp://user:pa55word@host/", Timeout: -1, MaxAge: -1, MaxAttempts: -1, Concurrency: -1,
				Order: "sideways", OnFailure: "panic", Events: []string{"mess*age", ""}, Headers: map[string]channel.Text{"webhook-id": {}, "host": {}},
			},
			{Name: "log", Kind: "log", URL: "http://x"},
			{Name: "pigeon", Kind: "pigeon"},
			{Kind: "log"},
			{Name: "bad", Kind: "http", URL: "http://user:pa55word@ho st/"},
			{Name: "twice", Kind: "log"},
			{Name: "twice", Kind: "log"},
			{Name: "ca", Kind: "http", URL: "https://x/", CAFile: "/nowhere/ca.pem"},
		}, Options{Default: []string{"nobody"}})
		if err == nil {
			t.Fatal("got no error, want many")
		}
		for _, want := range []string{
			`target "app": url: must begin with http`, `target "app": timeout: must be positive`, `target "app": max_age: must be positive`,
			`target "app": max_attempts: must be positive`, `target "app": concurrency: must be positive`, `target "app": order: must be`,
			`target "app": on_failure: must be`, `target "app": events: "mess*age"`, `target "app": events: ""`, `target "app": headers: webhook-id`,
			`target "app": headers: host`, `target "log": url: a log target has none`, `target "pigeon": type: must be http, command, log or pull`,
			`target "": name: is missing`, `target "bad": url: is not an address`, `target "twice": name: there are two`,
			`target "ca": ca_file: read authorities`, `delivery.targets: there is no target "nobody"`,
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want it to say %s", err, want)
			}
		}
		if strings.Contains(err.Error(), "pa55word") {
			t.Errorf("got %v, want no password in it", err)
		}
	})

	t.Run("events select types", func(t *testing.T) {
		for _, c := range []struct {
			events []string
			typ    string
			want   bool
		}{
			{nil, "message", true},
			{nil, "heartbeat", true},
			{nil, "raw", true},
			{nil, "system.link", false},
			{[]string{"*"}, "message.edited", true},
			{[]string{"*"}, "system.link", false},
			{[]string{"message"}, "message", true},
			{[]string{"message"}, "message.edited", false},
			{[]string{"message.*"}, "message.edited", true},
			{[]string{"message.*"}, "message", false},
			{[]string{"system.*"}, "system.link", true},
			{[]string{"system.link"}, "system.link", true},
			{[]string{"system.link"}, "message", false},
			{[]string{"s*"}, "system.link", false},
		} {
			if got := (Target{Events: c.events}).withDefaults().wants(c.typ); got != c.want {
				t.Errorf("got %v for %q with events %q, want %v", got, c.typ, c.events, c.want)
			}
		}
	})

	t.Run("an installation's own targets come before the default ones", func(t *testing.T) {
		targets := []Target{{Name: "a", Kind: "log"}, {Name: "b", Kind: "log", Events: []string{"message"}}, {Name: "c", Kind: "log"}}
		route := func(id string) []string {
			return map[string][]string{"acme": {"b", "c", "b"}, "typo": {"ap"}, "none": {}}[id]
		}
		for _, c := range []struct {
			def   []string
			route func(string) []string
			event channel.Event
			want  []string
		}{
			{nil, nil, channel.Event{Type: "message"}, []string{"a", "b", "c"}},
			{nil, nil, channel.Event{Type: "heartbeat"}, []string{"a", "c"}},
			{[]string{"c"}, nil, channel.Event{Type: "message"}, []string{"c"}},
			{[]string{"a"}, route, channel.Event{Type: "message"}, []string{"b", "c"}},
			{[]string{"a"}, route, channel.Event{Type: "message", Installation: "rider"}, []string{"a"}},
			{[]string{"a"}, route, channel.Event{Type: "message", Installation: "typo"}, []string{"ap"}},
			{[]string{"a"}, route, channel.Event{Type: "message", Installation: "none"}, []string{"a"}},
		} {
			d, err := New(newOutbox(), targets, Options{Default: c.def, Route: c.route})
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Targets(channel.Term{Installation: "acme"}, &c.event); !slices.Equal(got, c.want) {
				t.Errorf("got %v for %+v with default %v, want %v", got, c.event, c.def, c.want)
			}
		}
	})
}
