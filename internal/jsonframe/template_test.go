package jsonframe

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

func TestTemplate(t *testing.T) {
	v := Values{
		ID: json.RawMessage(`"a\"b\nc"`), Cursor: json.RawMessage(`42`), Secrets: map[string]string{"token": `t"k`},
		Frame: []byte(`{"envelope":{"id":"x y","n":1.50}}`),
	}
	for _, c := range []struct{ name, in, want string }{
		{"a value outside a string is written as JSON", `{"ack":{{id}}}`, `{"ack":"a\"b\nc"}`},
		{"a number stays a number", `{"since":{{cursor}}}`, `{"since":42}`},
		{"a number inside a string becomes text", `{"since":"v{{cursor}}"}`, `{"since":"v42"}`},
		{"a value inside a string is escaped", `{"ack":"id={{ id }};"}`, `{"ack":"id=a\"b\nc;"}`},
		{"a secret", `{"auth":{{token}},"q":"\"{{token}}"}`, `{"auth":"t\"k","q":"\"t\"k"}`},
		{"a pointer into the frame", `{"e":{{/envelope/id}},"n":{{/envelope/n}}}`, `{"e":"x y","n":1.50}`},
		{"a whole object by its pointer", `{{/envelope}}`, `{"id":"x y","n":1.50}`},
		{"plain text loses control characters", "ACK {{id}}\r\n", "ACK a\"bc\r\n"},
		{"no placeholder at all", `{"type":"ping"}`, `{"type":"ping"}`},
		{"braces that end together", `{"a":{"b":{{cursor}}}}`, `{"a":{"b":42}}`},
		{"a backslash before the placeholder's string ends", `["\\",{{id}}]`, `["\\","a\"b\nc"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tpl, err := ParseTemplate(c.in, []string{"id", "cursor", "token"}, true)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := tpl.Render(v); !ok || string(got) != c.want {
				t.Errorf("got %s, %v, want %s", got, ok, c.want)
			}
		})
	}
}

func TestATemplateWithoutAValueIsNotSent(t *testing.T) {
	for _, in := range []string{`{"ack":{{id}}}`, `{"since":"{{cursor}}"}`, `{"e":{{/missing}}}`, `ACK {{id}}`} {
		tpl, err := ParseTemplate(in, []string{"id", "cursor"}, true)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := tpl.Render(Values{Frame: []byte(`{}`)}); ok {
			t.Errorf("%s: got %s, want nothing to send", in, got)
		}
	}
}

func TestAURLTemplate(t *testing.T) {
	tpl, err := ParseURL("wss://h/{{token}}/ws?since={{cursor}}&t={{token}}", []string{"token", "cursor"})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := tpl.Render(Values{Cursor: json.RawMessage(`"a&b"`), Secrets: map[string]string{"token": "x/?y z"}})
	if want := "wss://h/x%2F%3Fy%20z/ws?since=a%26b&t=x%2F%3Fy+z"; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	got, ok := tpl.Render(Values{Secrets: map[string]string{"token": "t"}})
	if want := "wss://h/t/ws?since=&t=t"; !ok || string(got) != want {
		t.Errorf("got %s, %v, want %s: a cursor that is not known yet is empty", got, ok, want)
	}
}

func TestParseTemplateNamesTheFault(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"{{id"}`: "{{ without }}", `{{nope}}`: "{{nope}} is not known here; there are: id, cursor", `{{}}`: "{{}} is not known here",
		`{{/~}}`: "is no JSON pointer",
	} {
		if _, err := ParseTemplate(in, []string{"id", "cursor"}, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", in, err, want)
		}
	}
	if _, err := ParseTemplate(`{{/a}}`, []string{"id"}, false); err == nil {
		t.Error("got no error for a pointer where there is no frame, want one")
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add(`{"ack":{{id}},"s":"{{id}}\""}`, "x\"\\\n\u2028", `{"a":["b"]}`)
	f.Add("ACK {{id}} {{/a/0}}\n", "1", `[]`)
	f.Add(`{{cursor}}`, "", ``)
	f.Fuzz(func(t *testing.T, in, value, frame string) {
		tpl, err := ParseTemplate(in, []string{"id", "cursor", "token"}, true)
		if err != nil {
			return
		}
		v := Values{ID: Quote(value), Cursor: json.RawMessage("7"), Secrets: map[string]string{"token": value}, Frame: []byte(frame)}
		got, ok := tpl.Render(v)
		if !ok {
			return
		}
		if tpl.IsJSON() && (frame == "" || json.Valid([]byte(frame))) && !json.Valid(got) {
			t.Fatalf("%q with %q and %q: got %s, want JSON", in, value, frame, got)
		}
		if tpl.form == formText && !strings.Contains(in, "\n") && strings.Contains(string(got), "\n") {
			t.Fatalf("%q with %q: got %q, want no line that the template does not have", in, value, got)
		}
	})
}

func FuzzURLTemplate(f *testing.F) {
	f.Add("a/b?c=d&e=f#g")
	f.Add("..")
	f.Fuzz(func(t *testing.T, value string) {
		tpl, err := ParseURL("ws://h/p/{{token}}/q?t={{token}}", []string{"token"})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := tpl.Render(Values{Secrets: map[string]string{"token": value}})
		u, err := url.Parse(string(got))
		want := Text(Quote(value)) // invalid UTF-8 becomes U+FFFD
		if err != nil || u.Host != "h" || u.Query().Get("t") != want || u.Path != "/p/"+want+"/q" {
			t.Fatalf("%q: got %s and %v, want the value in its place", value, got, err)
		}
	})
}
