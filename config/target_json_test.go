package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestTargetJSON(t *testing.T) {
	t.Run("what a file says of a target is the same after a way through JSON", func(t *testing.T) {
		c, err := Load(Source{Text: []byte(`
[[target]]
name = "hook"
type = "http"
url = "https://example.com/events"
events = ["message", "action"]
kinds = ["direct"]
match = { "conversation.id" = ["C1", "C2"], "sender.bot" = "false" }
timeout = "90s"
max_age = "30d"
max_attempts = 3
order = "installation"
concurrency = 7
on_failure = "hold"
raw = false
batch = 10
gzip = true
signing_keys = [{ file = "key" }, { env = "KEY" }]
headers = { "X-Team" = "a<b", Authorization = { credential = "token" } }
ca_file = "ca.pem"

[[target]]
name = "plain"
type = "log"

[[target]]
name = "program"
type = "command"
command = ["/bin/cat", "-u"]
env = { MODE = "x", API_TOKEN = { env = "TOKEN" } }

[[target]]
name = "nothing"
type = "log"
events = []
`)})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.Targets {
			got, err := ParseTarget(Source{}, want.Name, want.JSON())
			if err != nil {
				t.Fatal(err)
			}
			want.Pos = Pos{}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v from %s, want %+v", got, want.JSON(), want)
			}
			if again := got.JSON(); string(again) != string(want.JSON()) {
				t.Errorf("got %s, want %s", again, want.JSON())
			}
		}
		if got, want := string(c.Targets[1].JSON()), `{"type":"log"}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})

	t.Run("what is wrong is said all at once, by key, and no value is repeated", func(t *testing.T) {
		_, err := ParseTarget(Source{}, "app", []byte(`{"type":"http","url":"http://u:pa55word@x/","tiemout":"3s","timeout":5,"concurrency":1.5,
			"headers":{"Authorization":"Bearer s3cret"},"ca_file":"ca.pem","signing_keys":[{"file":"key"}],"command":["x"],"events":"message"}`))
		if err == nil {
			t.Fatal("got no error, want many")
		}
		for _, want := range []string{
			`target "app": url: a literal secret is refused`, `target "app": tiemout`, `did you mean "timeout"`, `timeout: must be a string`, `concurrency: must be a whole number`,
			`a literal secret is refused`, `ca_file: must be an absolute path`, `signing_keys: must be an absolute path`, `command: does not go with`, `events: must be a list`,
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want it to say %s", err, want)
			}
		}
		for _, secret := range []string{"pa55word", "s3cret"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("got %v, want no %s in it", err, secret)
			}
		}
	})

	t.Run("what is no object, or has no type or a wrong name, is refused", func(t *testing.T) {
		for _, c := range []struct{ name, json, want string }{
			{"app", `[]`, "must be an object"},
			{"app", `{`, "is not JSON"},
			{"app", `{}`, "type: is missing"},
			{"a b", `{"type":"log"}`, "name: must be letters"},
			{"app", `{"type":"log","name":"other"}`, "stands beside the target"},
			{"app", `{"type":"pigeon"}`, "type: must be"},
			{"app", `{"type":"log","events":[null]}`, "events"},
			{"app", `{"type":"log","raw":{"a":[1,{"b":null}]}}`, "raw: must be true or false"},
		} {
			if _, err := ParseTarget(Source{}, c.name, []byte(c.json)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v for %s, want %q", err, c.json, c.want)
			}
		}
	})
}
