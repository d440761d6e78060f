package secretname_test

import (
	"testing"

	"leasehold/internal/secretname"
)

func TestGuesses(t *testing.T) {
	for _, c := range []struct {
		name  string
		guess func(string) bool
		text  string
		want  bool
	}{
		{"a header of credentials is one in any case", secretname.Looks, "AUTHORIZATION", true},
		{"a word in a longer name is enough", secretname.Looks, "X-Api-Key-2", true},
		{"a header of a team is none", secretname.Looks, "X-Team", false},
		{"a scheme and a placeholder hold no secret", secretname.OnlyPlaceholders, "Bearer {{token}}", true},
		{"a literal beside a placeholder may", secretname.OnlyPlaceholders, "Bearer {{x}} hunter2", false},
		{"a text without a placeholder may", secretname.OnlyPlaceholders, "hunter2", false},
		{"a password in a URL is a secret", secretname.InURL, "wss://u:hunter2@h/p", true},
		{"so is one without a user", secretname.InURL, "redis://:hunter2@h", true},
		{"and one with an at sign", secretname.InURL, "wss://u:hunter@2@h/p", true},
		{"a password from a placeholder is none", secretname.InURL, "wss://{{user}}:{{ password }}@h/p", false},
		{"a literal beside one is", secretname.InURL, "wss://u:{{a}}hunter2@h", true},
		{"a user alone is none", secretname.InURL, "wss://u@h/p", false},
		{"a port is none", secretname.InURL, "ws://h:80/p@q", false},
		{"a time and an address are no URL", secretname.InURL, "at 10:30 write to a@b", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.guess(c.text); got != c.want {
				t.Errorf("%q: got %t, want %t", c.text, got, c.want)
			}
		})
	}
}

func TestInArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int // -1: none
	}{
		{nil, -1},
		{[]string{"run", "--fast", "-v", "x"}, -1},
		{[]string{"run", "--token=hunter2"}, 1},
		{[]string{"run", "--access-token", "hunter2"}, 2},
		{[]string{"run", "-password", "hunter2"}, 2},
		{[]string{"run", "GITHUB_TOKEN=hunter2"}, 1},
		{[]string{"curl", "-H", "Authorization: Bearer hunter2"}, 2},
		{[]string{"curl", "-H", "X-Api-Key:hunter2"}, 2},
		{[]string{"curl", "https://u:hunter2@host/"}, 1},
		{[]string{"run", "--store=postgres://u:hunter2@host/"}, 1},
		{[]string{"run", "xoxb-1-2-abc"}, 1},
		{[]string{"run", "--slack=xapp-1-2-abc"}, 1},
		{[]string{"run", "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x"}, 1},
		{[]string{"run", "--token-file=hunter2"}, -1},
		{[]string{"run", "--token", "/etc/token"}, -1},
		{[]string{"run", "--token=$TOKEN"}, -1},
		{[]string{"run", "--token", "--verbose"}, -1},
		{[]string{"run", "--token"}, -1},
		{[]string{"run", "--token="}, -1},
		{[]string{"agent", "--max-tokens", "4096", "--tokenizer", "bpe"}, -1},
		{[]string{"curl", "--cookie-jar", "jar"}, -1},
		{[]string{"sh", "-c", "TOKEN=$(cat /etc/token) exec run"}, -1},
		{[]string{"sh", "-c", "say the token=x is gone"}, -1},
		{[]string{"token", "hunter2"}, -1},
	} {
		got, found := secretname.InArguments(c.args)
		if !found {
			got = -1
		}
		if got != c.want {
			t.Errorf("%q: got %d, want %d", c.args, got, c.want)
		}
	}
}

func TestInQuery(t *testing.T) {
	for text, want := range map[string]string{
		"wss://h/p?token=hunter2":                "token",
		"https://h/p?a=1&Access_Token=hunter2#x": "Access_Token",
		"https://h/p?key=hunter2":                "key",
		"https://h/p?bot=xoxb-1-2-abc":           "bot",
		"https://h/p?token={{token}}x":           "token",
		"https://h/p?token={{token}}":            "",
		"https://h/p?token=":                     "",
		"https://h/p?page=2&monkey=1":            "",
		"https://h/token=hunter2":                "",
		"what is ?token=hunter2":                 "",
		"https://h/p#?token":                     "",
	} {
		if got, found := secretname.InQuery(text); got != want || found != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", text, got, found, want)
		}
	}
}
