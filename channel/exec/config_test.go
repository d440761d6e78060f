package exec

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	build := func(t *testing.T, raw string) error {
		t.Helper()
		c, err := Spec(nil).Decode(json.RawMessage(raw), func(string, string) (string, error) { return "a\x00b", nil })
		if err == nil {
			_, err = c.Build(t.Context())
		}
		return err
	}
	for name, c := range map[string]struct{ raw, want string }{
		"no command":                    {`{}`, "command is missing"},
		"an empty command":              {`{"command":[]}`, "command: is empty"},
		"an empty program":              {`{"command":[""]}`, "command: is empty"},
		"a command for a shell":         {`{"command":"cat x | y"}`, "command: want"},
		"a path from the folder":        {`{"command":["./bot"]}`, `command: "./bot" depends on the folder`},
		"a path to a folder below":      {`{"command":["bin/bot"]}`, "depends on the folder"},
		"a NUL in an argument":          {`{"command":["/bot","a\u0000b"]}`, "command: has a NUL byte"},
		"a NUL in a value":              {`{"command":["/bot"],"env":{"A":{"env":"X"}}}`, "env: A: has a NUL byte"},
		"a name that is none":           {`{"command":["/bot"],"env":{"A=B":"c"}}`, `env: "A=B" is no name`},
		"an empty name":                 {`{"command":["/bot"],"env":{"":"c"}}`, `env: "" is no name`},
		"our own name for it":           {`{"command":["/bot"],"env":{"LEASEHOLD_INSTALLATION":"c"}}`, "LEASEHOLD_INSTALLATION is set by Leasehold"},
		"our own mark":                  {`{"command":["/bot"],"env":{"LEASEHOLD_CHILD":"c"}}`, "LEASEHOLD_CHILD is set by Leasehold"},
		"a config that is not a table":  {`{"command":["/bot"],"config":[1]}`, "config: want"},
		"what nobody knows":             {`{"command":["/bot"],"commnd":["/bot"]}`, "commnd"},
		"a program in the PATH is fine": {`{"command":["bot","-x"],"config":{"a":{"b":[1,12345678901234567890]}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := build(t, c.raw)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}

	t.Run("numbers stay as they are written", func(t *testing.T) {
		c, err := Spec(nil).Decode(json.RawMessage(`{"command":["bot"],"config":{"n":12345678901234567890}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPlan(*c.Value().(*Config), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(line("start", start{Config: p.config})); !strings.Contains(got, `"n":12345678901234567890`) {
			t.Errorf("got %s, want the number", got)
		}
	})

	t.Run("only the file may define it", func(t *testing.T) {
		if s := Spec(nil); !s.FileOnly || s.Prepare == nil {
			t.Errorf("got %+v, want a type for the file only, that prepares", s)
		}
	})

	t.Run("a config that differs is another connection", func(t *testing.T) {
		seen := map[string]string{}
		for _, raw := range []string{
			`{"command":["bot"]}`, `{"command":["bot","x"]}`, `{"command":["bot"],"env":{"A":"b"}}`, `{"command":["bot"],"env":{"A":"c"}}`,
			`{"command":["bot"],"config":{"a":1}}`, `{"command":["bot"],"config":{"a":"1"}}`, `{"command":["bot"],"config":{"a":{"b":1}}}`,
		} {
			c, err := Spec(nil).Decode(json.RawMessage(raw), nil)
			if err != nil {
				t.Fatal(err)
			}
			print := c.Fingerprint([]byte("key"))
			if other, ok := seen[print]; ok {
				t.Errorf("got one fingerprint for %s and %s", raw, other)
			}
			seen[print] = raw
		}
	})
}

func TestLevels(t *testing.T) {
	for name, want := range map[string]slog.Level{"debug": slog.LevelDebug, "INFO": slog.LevelInfo, "Warning": slog.LevelWarn, "error": slog.LevelError, "": slog.LevelInfo, "loud": slog.LevelInfo} {
		if got := level(name); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct {
		body, id, kind, text, cursor, ack string
		odd                               bool
	}{
		"a message":                   {`{"id":"1","text":"hi","cursor":7}`, "1", "message", "hi", "7", `"1"`, false},
		"its own type":                {`{"id":"1","type":"reaction","reaction":{"emoji":"+1"}}`, "1", "reaction", "", "", `"1"`, false},
		"no type and no text":         {`{"id":"1","raw":{"a":1}}`, "1", "raw", "", "", `"1"`, false},
		"a type that is too long":     {`{"id":"1","type":"` + strings.Repeat("x", 65) + `"}`, "1", "raw", "", "", `"1"`, false},
		"no id":                       {`{"text":"hi"}`, "", "message", "hi", "", "", false},
		"no cursor":                   {`{"id":"1","cursor":null}`, "1", "raw", "", "", `"1"`, false},
		"a number for an id":          {`{"id":42,"text":"hi","cursor":"c"}`, "42", "raw", "", `"c"`, "42", true},
		"a time that is none":         {`{"id":"1","time":"noon"}`, "1", "raw", "", "", `"1"`, true},
		"a time outside the calendar": {`{"id":"1","time":"0000-12-31T00:00:00Z"}`, "1", "raw", "", "", `"1"`, true},
		"raw and payload":             {`{"id":"1","raw":1,"payload":"AA=="}`, "1", "raw", "", "", `"1"`, true},
		"another installation":        {`{"id":"1","installation":"other"}`, "1", "raw", "", "", `"1"`, false},
		"a long id":                   {`{"id":"` + strings.Repeat("x", 256) + `"}`, shortID(strings.Repeat("x", 256)), "raw", "", "", `"` + strings.Repeat("x", 256) + `"`, false},
		"no object":                   {`5`, "", "raw", "", "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := decode(json.RawMessage(c.body))
			e, cursor, id := r.event, r.cursor, r.id
			if e.ID != c.id || e.Type != c.kind || e.Text != c.text || e.Body != c.text || string(cursor) != c.cursor || string(id) != c.ack || (err != nil) != c.odd || e.Installation != "" {
				t.Errorf("got %+v, cursor %s, ack %s, %v, want %+v", e, cursor, id, err, c)
			}
			if c.odd && string(e.Raw) != c.body {
				t.Errorf("got %s, want it kept as it was told", e.Raw)
			}
		})
	}
}

func TestFollowUpIsTakenOut(t *testing.T) {
	const address = "https://platform.example/answers/planted"
	for name, body := range map[string]string{
		"of an event":                        `{"id":"1","text":"hi","raw":{"url":"https:\/\/platform.example/answers/planted"},"follow_up":{"address":"` + address + `","expires":"2026-11-30T09:30:00Z"}}`,
		"of one that is kept as it was told": `{"id":"1","time":"noon","follow_up":{"address":"` + address + `"}}`,
		"of one that also says it elsewhere": `{"id":"1","time":"noon","raw":"` + address + `","follow_up":{"address":"` + address + `"}}`,
		"of one whose follow_up has no form": `{"id":"1","follow_up":"` + address + `"}`,
		"of one that has it in raw":          `{"id":"1","raw":["` + address + `"],"follow_up":{"address":"` + address + `"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			r, err := decode(json.RawMessage(body))
			stored, merr := json.Marshal(r.event)
			if merr != nil || strings.Contains(string(stored), "planted") {
				t.Errorf("got %s, %v, want no address in it", stored, merr)
			}
			if err == nil && r.event.FollowUp.Address.Reveal() != address {
				t.Errorf("got %q, want the address beside the event", r.event.FollowUp.Address.Reveal())
			}
			if name == "of an event" && r.event.FollowUp.Expires.Format(time.RFC3339) != "2026-11-30T09:30:00Z" {
				t.Errorf("got %s, want when it ends", r.event.FollowUp.Expires)
			}
		})
	}
}
