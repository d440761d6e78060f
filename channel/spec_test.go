package channel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"leasehold/channel"
)

type config struct {
	URL     string                    `json:"url" channel:"required,connection"`
	Token   channel.Secret            `json:"token" channel:"required,connection"`
	Headers map[string]channel.Text   `json:"headers" channel:"connection"`
	List    []channel.Secret          `json:"list" channel:"connection"`
	Tables  []map[string]channel.Text `json:"tables" channel:"connection"`
	Every   channel.Duration          `json:"every"`
	Count   int                       `json:"count" channel:"connection"`
	Maybe   *string                   `json:"maybe" channel:"connection"`
	Rate    channel.Rate              `json:"rate" channel:"connection"`
	Nested  struct {
		Name string         `json:"name" channel:"required"`
		Key  channel.Secret `json:"key"`
	} `json:"nested" channel:"connection"`
	Hidden string `json:"-"`
}

type built struct{ c config }

func (built) Run(context.Context, *channel.Link) error { return nil }

func spec(name string) channel.Spec {
	return channel.Define(channel.Definition[config]{
		Name:    name,
		Default: func() config { return config{Every: channel.Duration(time.Minute)} },
		New: func(_ context.Context, c config) (channel.Channel, error) {
			if c.Count < 0 {
				return nil, errors.New("count: must be positive")
			}
			return built{c}, nil
		},
		Identity: func(c config) string { return c.URL },
	})
}

func resolve(kind, name string) (string, error) {
	if name == "MISSING" {
		return "", fmt.Errorf("environment variable %s is not set", name)
	}
	return kind + ":" + name + ":" + planted, nil
}

const minimal = `"url":"u","token":{"env":"T"},"nested":{"name":"n"}`

func TestDecodeResolvesSecretsWhereTheyStand(t *testing.T) {
	c, err := spec("x").Decode(json.RawMessage(`{`+minimal+`,
		"headers":{"A":"plain","B":{"file":"/b"}},"list":[{"credential":"c"}],"tables":[{"k":{"env":"K"}}],"every":"1d"}`), resolve)
	if err != nil {
		t.Fatal(err)
	}
	got := c.Value().(*config)
	for what, pair := range map[string][2]string{
		"token": {got.Token.Reveal(), "env:T:" + planted}, "a literal text": {got.Headers["A"].Reveal(), "plain"},
		"a text by reference": {got.Headers["B"].Reveal(), "file:/b:" + planted}, "a secret in a list": {got.List[0].Reveal(), "credential:c:" + planted},
		"a text in a table in a list": {got.Tables[0]["k"].Reveal(), "env:K:" + planted}, "a duration": {got.Every.Std().String(), "24h0m0s"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %q, want %q", what, pair[0], pair[1])
		}
	}
}

func TestDecodeStartsFromTheDefault(t *testing.T) {
	c, err := spec("x").Decode(json.RawMessage(`{`+minimal+`}`), resolve)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Value().(*config).Every.Std(); got != time.Minute {
		t.Errorf("got %s, want the default of 1m", got)
	}
	if got := c.Identity(); got != "u" {
		t.Errorf("got identity %q, want u", got)
	}
	ch, err := c.Build(t.Context())
	if err != nil || ch.(built).c.URL != "u" {
		t.Errorf("got %v and error %v, want a channel with its config", ch, err)
	}
}

func TestDecodeNamesTheFaultAndNoSecret(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"a literal secret":                      {`{"url":"u","token":"` + planted + `"}`, "token: a literal secret is refused"},
		"a literal secret in a list":            {`{` + minimal + `,"list":["` + planted + `"]}`, "list[0]: a literal secret is refused"},
		"a literal secret, nested":              {`{` + minimal + `,"nested":{"name":"n","key":"` + planted + `"}}`, "nested.key: a literal secret is refused"},
		"a literal secret under another case":   {`{` + minimal + `,"Token":"` + planted + `"}`, `unknown key "Token"`},
		"a literal secret under a nested case":  {`{"url":"u","nested":{"KEY":"` + planted + `"}}`, `unknown key "nested.KEY"`},
		"a number where a secret stands":        {`{"token":5}`, "token: a literal secret is refused"},
		"a secret of no known kind":             {`{"token":{"vault":"x"}}`, "token: a secret is {"},
		"a secret of two kinds":                 {`{"token":{"env":"A","file":"B"}}`, "token: a secret is {"},
		"a secret whose name is no text":        {`{"token":{"env":5}}`, "token: a secret is {"},
		"a reference that does not resolve":     {`{"token":{"env":"MISSING"}}`, "token: environment variable MISSING is not set"},
		"a text that is neither":                {`{"headers":{"A":7}}`, "headers.A: a literal secret is refused"},
		"an unknown key":                        {`{` + minimal + `,"urll":"u"}`, `unknown key "urll"`},
		"an unknown nested key":                 {`{` + minimal + `,"nested":{"name":"n","nam":""}}`, `unknown key "nested.nam"`},
		"a missing key":                         {`{"token":{"env":"T"},"nested":{"name":"n"}}`, "url is missing"},
		"a missing secret":                      {`{"url":"u","nested":{"name":"n"}}`, "token is missing"},
		"a missing nested key":                  {`{"url":"u","token":{"env":"T"}}`, "nested.name is missing"},
		"an empty required value":               {`{"url":"","token":{"env":"T"},"nested":{"name":"n"}}`, "url is missing"},
		"a wrong type":                          {`{` + minimal + `,"count":"three"}`, "count: want int, got string"},
		"a wrong type, nested":                  {`{"url":"u","nested":{"name":5}}`, "nested.name: want string, got number"},
		"a table where a text stands":           {`{"url":{"a":"b"}}`, "url: want string, got object"},
		"a list where a table stands":           {`{"nested":[1]}`, "nested: want"},
		"a negative duration":                   {`{` + minimal + `,"every":"-5s"}`, "must not be negative"},
		"a number where a duration stands":      {`{` + minimal + `,"every":5}`, "every: want"},
		"a key that is not for the file":        {`{` + minimal + `,"Hidden":"x"}`, `unknown key "Hidden"`},
		"what is not a table":                   {`["a"]`, "config is not a table of keys"},
		"what is not JSON":                      {`{"url":`, "config is not JSON"},
		"two values":                            {`{` + minimal + `}{}`, "config is not JSON: something follows its end"},
		"null":                                  {`null`, "config is not a table of keys"},
		"nothing at all lacks what is required": {``, "url is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := spec("x").Decode(json.RawMessage(c.raw), resolve)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), planted) {
				t.Errorf("got %v, want no secret in it", err)
			}
		})
	}
	t.Run("a reference where nothing resolves", func(t *testing.T) {
		_, err := spec("x").Decode(json.RawMessage(`{`+minimal+`}`), nil)
		if want := "token: no secrets can be resolved here"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	})
	t.Run("a spec that was not defined", func(t *testing.T) {
		_, err := channel.Spec{Name: "bare"}.Decode(json.RawMessage(`{}`), nil)
		if want := `channel type "bare" was not made by channel.Define`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	})
}

func TestFingerprintChangesWithTheConnectionOnly(t *testing.T) {
	key := []byte("key of the store")
	print := func(t *testing.T, name, raw string, resolve channel.Resolver) string {
		t.Helper()
		c, err := spec(name).Decode(json.RawMessage(raw), resolve)
		if err != nil {
			t.Fatal(err)
		}
		return c.Fingerprint(key)
	}
	base := print(t, "x", `{`+minimal+`}`, resolve)
	t.Run("it is the same for the same config", func(t *testing.T) {
		for _, raw := range []string{
			`{` + minimal + `}`, `{"nested":{"name":"n"},"token":{"env":"T"},"url":"u"}`, `{` + minimal + `,"every":"5m"}`, `{` + minimal + `,"list":[]}`,
		} {
			if got := print(t, "x", raw, resolve); got != base {
				t.Errorf("%s: got %s, want %s", raw, got, base)
			}
		}
	})
	t.Run("no two configs that connect differently share one", func(t *testing.T) {
		seen := map[string]string{base: "base"}
		other := func(string, string) (string, error) { return "rotated", nil }
		for what, got := range map[string]string{
			"another type":         print(t, "y", `{`+minimal+`}`, resolve),
			"a rotated secret":     print(t, "x", `{`+minimal+`}`, other),
			"another url":          print(t, "x", `{"url":"v","token":{"env":"T"},"nested":{"name":"n"}}`, resolve),
			"a header":             print(t, "x", `{`+minimal+`,"headers":{"a":"b"}}`, resolve),
			"two headers":          print(t, "x", `{`+minimal+`,"headers":{"a":"b","c":"d"}}`, resolve),
			"a header like two":    print(t, "x", `{`+minimal+`,"headers":{"a":"b\"\"c\":\"d"}}`, resolve),
			"a nested secret":      print(t, "x", `{"url":"u","token":{"env":"T"},"nested":{"name":"n","key":{"env":"K"}}}`, resolve),
			"tables 1 and 1":       print(t, "x", `{`+minimal+`,"tables":[{"a":"1"},{"b":"2"}]}`, resolve),
			"tables 2 and 0":       print(t, "x", `{`+minimal+`,"tables":[{"a":"1","b":"2"},{}]}`, resolve),
			"a list":               print(t, "x", `{`+minimal+`,"list":[{"env":"A"},{"env":"B"}]}`, resolve),
			"a list in its order":  print(t, "x", `{`+minimal+`,"list":[{"env":"B"},{"env":"A"}]}`, resolve),
			"an empty, set string": print(t, "x", `{`+minimal+`,"maybe":""}`, resolve),
			"a rate":               print(t, "x", `{`+minimal+`,"rate":"1/s"}`, resolve),
			"another rate":         print(t, "x", `{`+minimal+`,"rate":"1/m"}`, resolve),
			"a number":             print(t, "x", `{`+minimal+`,"count":1}`, resolve),
		} {
			if twin, ok := seen[got]; ok {
				t.Errorf("%s and %s: got the same fingerprint %s", what, twin, got)
			}
			seen[got] = what
		}
	})
	t.Run("it is keyed", func(t *testing.T) {
		c, err := spec("x").Decode(json.RawMessage(`{`+minimal+`}`), resolve)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Fingerprint([]byte("another key")); got == base {
			t.Error("got the same fingerprint under another key")
		}
	})
}

func TestABuildErrorIsTheConfigs(t *testing.T) {
	c, err := spec("x").Decode(json.RawMessage(`{`+minimal+`,"count":-1}`), resolve)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Build(t.Context()); err == nil || err.Error() != "count: must be positive" {
		t.Errorf("got %v, want the type's own words", err)
	}
}

func TestTypes(t *testing.T) {
	types, err := channel.NewTypes(resolve, spec("b"), spec("a"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(types.Names(), " "); got != "b a" {
		t.Errorf("got %q, want the order given", got)
	}
	if _, ok := types.Lookup("a"); !ok {
		t.Error("got no spec for a known type")
	}
	if _, err := types.Decode("a", json.RawMessage(`{`+minimal+`}`)); err != nil {
		t.Error(err)
	}
	if _, err := types.Decode("c", nil); err == nil || err.Error() != `channel type "c" is not known; run leasehold types list` {
		t.Errorf("got %v, want the next step", err)
	}
	if _, err := channel.NewTypes(nil, spec("a"), spec("a")); err == nil {
		t.Error("got no error for a type defined twice")
	}
}

func TestDefineRefusesWhatCannotWork(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("got no panic for a definition without New")
		}
	}()
	channel.Define(channel.Definition[config]{Name: "x"})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{` + minimal + `}`))
	f.Add([]byte(`{"token":"x","nested":[],"tables":[null,{"a":null}],"list":null,"headers":5}`))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		c, err := spec("x").Decode(raw, resolve)
		if err == nil {
			c.Fingerprint([]byte("k"))
		}
	})
}
