package admin

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"leasehold/channel"
)

func TestLiteral(t *testing.T) {
	type nested struct {
		Headers map[string]channel.Text `json:"headers"`
		Login   channel.Text            `json:"login"`
		URLs    []string                `json:"urls"`
		Labels  map[string]string       `json:"labels"`
	}
	type config struct {
		URL  string  `json:"url"`
		More *nested `json:"more"`
	}
	for _, c := range []struct{ name, config, want string }{
		{"a header that carries a credential", `{"more":{"headers":{"Authorization":"Bearer hunter2"}}}`, "more.headers.Authorization: a literal secret is refused"},
		{"the same by reference", `{"more":{"headers":{"Authorization":{"env":"X"}}}}`, ""},
		{"the same with a placeholder", `{"more":{"headers":{"Authorization":"Bearer {{token}}"}}}`, ""},
		{"a header of a harmless name", `{"more":{"headers":{"X-Team":"a"}}}`, ""},
		{"a text outside a table of names", `{"more":{"login":"{\"token\":\"{{token}}\"}"}}`, ""},
		{"a table that holds no secrets", `{"more":{"labels":{"token":"a"}}}`, ""},
		{"a password in a URL", `{"url":"wss://u:hunter2@h"}`, "url: a literal secret is refused"},
		{"one from a placeholder", `{"url":"wss://u:{{password}}@h"}`, ""},
		{"one in a list", `{"more":{"urls":["wss://h","wss://u:hunter2@h"]}}`, "more.urls[1]: a literal secret is refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if err := literal(reflect.TypeFor[config](), json.RawMessage(c.config)); err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") || strings.Contains(got, "hunter2") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
