package delivery

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"leasehold/channel"
	"leasehold/internal/eventmatch"
	"leasehold/internal/jsonframe"
)

// full is an event that has every field.
func full() channel.Event {
	return channel.Event{
		ID: "Ev1", Type: "everything", Workspace: "T1", MessageID: "m1", Conversation: channel.Ref{ID: "C1", Kind: "channel", Title: "deploys"},
		Sender: channel.Ref{ID: "U1", Name: "Ada", Bot: true, Self: true}, Thread: "t1", ReplyTo: "m0", Text: "@bot deploy", Body: "deploy",
		Addressed: true, Mentions: []string{"U7"}, Command: &channel.Command{Name: "/deploy", Args: "api"}, Action: &channel.Action{ID: "approve", Value: "yes"},
		Reaction: &channel.Reaction{Emoji: "eyes", Removed: true}, Device: &channel.Device{QoS: 1, Retain: true, Properties: map[string]string{"u.nit": "C"}},
		Late: true, ContentType: "text/plain", Raw: json.RawMessage(`{"a":[{"n":1.50,"s":"x","t":true,"z":null,"o":{}}]}`),
	}
}

func describe(string) (string, map[string]string) {
	return "slack", map[string]string{"tenant": "acme"}
}

func TestMatchSeesTheEnvelope(t *testing.T) {
	e := full()
	body, _, err := seal(stored(t, e), Node{}, true, true)
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]string{ // where a name is not simply the way to it
		"installation.labels.": "/data/installation/labels/tenant", "device.properties.": "/data/device/properties/u.nit",
		"raw/": "/data/raw/a/0/n", "mentions": "/data/mentions/0",
	}
	rests := map[string]string{"installation.labels.": "tenant", "device.properties.": "u.nit", "raw/": "a/0/n"}
	for _, name := range eventmatch.Names() {
		place := places[name]
		if place == "" {
			place = "/data/" + strings.ReplaceAll(name, ".", "/")
		}
		at, err := jsonframe.ParsePointer(place)
		if err != nil {
			t.Fatal(err)
		}
		raw, ok := at.In(body)
		if !ok {
			t.Errorf("%s: got nothing at %s of %s", name, place, body)
		}
		want := jsonframe.Text(raw)
		for _, c := range []struct {
			value string
			takes bool
		}{{want, true}, {want + "*", true}, {"*", true}, {"", false}} {
			target := Target{Match: map[string][]string{name + rests[name]: {c.value}}}
			if c.value == "true*" || c.value == "1*" {
				continue // no text
			}
			if got := target.withDefaults().takes(&subject{Event: &e, id: "acme", describe: describe}); got != c.takes {
				t.Errorf("%s = %q: got %v, want %v for an event in which it is %q", name, c.value, got, c.takes, want)
			}
		}
		nothing := channel.Event{Type: "message"}
		target := Target{Match: map[string][]string{name + rests[name]: {"", "false"}}}
		if name != "installation.id" && !target.withDefaults().takes(&subject{Event: &nothing, id: "acme"}) {
			t.Errorf(`%s: got an event without it refused, want "" or false to fit it`, name)
		}
	}
}

func TestTakes(t *testing.T) {
	for _, c := range []struct {
		target Target
		change func(*channel.Event)
		want   bool
	}{
		{Target{}, nil, true},
		{Target{Kinds: []string{"direct", "channel"}}, nil, true},
		{Target{Kinds: []string{"direct"}}, nil, false},
		{Target{Kinds: []string{"direct"}}, func(e *channel.Event) { e.Conversation = channel.Ref{} }, false},
		{Target{Events: []string{"system.*"}, Kinds: []string{"direct"}, Match: map[string][]string{"thread": {"x"}}}, func(e *channel.Event) { e.Type = "system.link" }, true},
		{Target{Events: []string{"other"}, Match: map[string][]string{"thread": {"t1"}}}, nil, false},
		{Target{Match: map[string][]string{"thread": {"x", "t1"}}}, nil, true},
		{Target{Match: map[string][]string{"thread": {"t1"}, "raw/a/0/s": {"x"}, "addressed": {"true"}}}, nil, true},
		{Target{Match: map[string][]string{"thread": {"t1"}, "raw/a/0/s": {"y"}, "addressed": {"true"}}}, nil, false},
		{Target{Match: map[string][]string{"raw/a/0/t": {"true"}}}, nil, true},
		{Target{Match: map[string][]string{"raw/a/0/z": {""}, "raw/a/0/o": {""}, "raw/a": {""}, "raw/nothing": {""}}}, nil, true},
		{Target{Match: map[string][]string{"raw/a": {""}}}, func(e *channel.Event) { e.Raw = nil }, true},
		{Target{Match: map[string][]string{"mentions": {"U9"}}}, func(e *channel.Event) { e.Mentions = []string{"U7", "U9"} }, true},
		{Target{Match: map[string][]string{"mentions": {"U9"}}}, nil, false},
		{Target{Match: map[string][]string{"mentions": {""}}}, func(e *channel.Event) { e.Mentions = nil }, true},
		{Target{Match: map[string][]string{"installation.id": {"rider*"}}}, func(e *channel.Event) { e.Installation = "rider-1" }, true},
		{Target{Match: map[string][]string{"installation.id": {"acme"}}}, func(e *channel.Event) { e.Installation = "rider-1" }, false},
		{Target{Match: map[string][]string{"installation.labels.tenant": {"acme"}}}, nil, true},
		{Target{Match: map[string][]string{"installation.labels.other": {"acme"}}}, nil, false},
	} {
		e := full()
		if c.change != nil {
			c.change(&e)
		}
		c.target.Name, c.target.Kind = "app", "log"
		d, err := New(newOutbox(), []Target{c.target}, Options{Describe: describe})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(d.Targets(channel.Term{Installation: "acme"}, &e)) == 1; got != c.want {
			t.Errorf("%+v: got %v, want %v for %+v", c.target, got, c.want, e)
		}
	}

	t.Run("what no event can have is a fault of the target", func(t *testing.T) {
		_, err := New(newOutbox(), []Target{{
			Name: "app", Kind: "log", Kinds: []string{""},
			Match: map[string][]string{"discussion": {"x"}, "text": {"a*b"}, "addressed": {"yes"}, "thread": {}, "raw/~": {"x"}},
		}}, Options{})
		for _, want := range []string{
			`target "app": kinds: "" is no kind`, `match: discussion is no field of an event`, `match: text may have one *, at its end`,
			`match: addressed must be true or false`, `match: thread has no value`, `match: raw/~ has no JSON pointer`,
		} {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("got %v, want it to say %s", err, want)
			}
		}
	})
}

func BenchmarkTargets(b *testing.B) {
	d, err := New(newOutbox(), []Target{
		{Name: "plain", Kind: "log"},
		{Name: "fields", Kind: "log", Kinds: []string{"channel"}, Match: map[string][]string{"installation.labels.tenant": {"acme"}, "text": {"@bot*"}}},
		{Name: "raw", Kind: "log", Match: map[string][]string{"raw/a/0/s": {"y"}}},
	}, Options{Describe: describe})
	if err != nil {
		b.Fatal(err)
	}
	e := full()
	b.ReportAllocs()
	for b.Loop() {
		_ = d.Targets(channel.Term{Installation: "acme"}, &e)
	}
}
