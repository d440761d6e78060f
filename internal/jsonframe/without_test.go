package jsonframe

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWithout(t *testing.T) {
	for _, c := range []struct{ name, doc, pointers, want string }{
		{"a value goes, and nothing else changes", `{ "a": 1.50, "token" : "planted-token", "b":[ ] }`, "/token", `{ "a": 1.50, "token" : null, "b":[ ] }`},
		{"a value deep inside goes", `{"a":[{"x":1},{"token":"planted-token"}]}`, "/a/1/token", `{"a":[{"x":1},{"token":null}]}`},
		{"a table goes as a whole", `{"a":{"b":[1,{}]},"c":2}`, "/a", `{"a":null,"c":2}`},
		{"of equal names each goes", `{"token":"first-of-them","token":"planted-token"}`, "/token", `{"token":null,"token":null}`},
		{"where else the value stands it goes, too", `{"token":"planted-token","text":"see planted-token","a":["planted-token"]}`, "/token", `{"token":null,"text":null,"a":[null]}`},
		{"however it is escaped", `{"u":"https://x.example/y","v":"https:\/\/x.example\/y","w":"\u0068ttps://x.example/y"}`, "/u", `{"u":null,"v":null,"w":null}`},
		{"as a name, too", `{"u":"planted-token","planted-token":1}`, "/u", `{"u":null,"-":1}`},
		{"a short value goes from its place only", `{"n":"1","a":"1","b":"21"}`, "/n", `{"n":null,"a":"1","b":"21"}`},
		{"a number goes from its place only", `{"n":123456789,"a":123456789}`, "/n", `{"n":null,"a":123456789}`},
		{"several go", `{"a":"planted-one","b":"planted-two","c":"planted-one planted-two"}`, "/a /b", `{"a":null,"b":null,"c":null}`},
		{"what is not there changes nothing", `{"a":1}`, "/b /a/c", `{"a":1}`},
		{"everything can go", `{"a":1}`, "-", `null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var pointers []Pointer
			for p := range strings.FieldsSeq(c.pointers) {
				parsed, err := ParsePointer(strings.TrimPrefix(p, "-"))
				if err != nil {
					t.Fatal(err)
				}
				pointers = append(pointers, parsed)
			}
			if got := string(Without([]byte(c.doc), pointers...)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	t.Run("a text goes wherever it stands", func(t *testing.T) {
		if got, want := string(WithoutText([]byte(`[{"a":"see planted-token"},"planted"]`), "planted-token", "x")), `[{"a":null},"planted"]`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func FuzzWithout(f *testing.F) {
	f.Add(`{"a":{"b":"planted-token"},"c":["\u0070lanted-token"]}`, "/a/b")
	f.Add(`[[[1]],"planted-token"]`, "/1")
	f.Fuzz(func(t *testing.T, doc, pointer string) {
		p, err := ParsePointer(pointer)
		if err != nil || !json.Valid([]byte(doc)) {
			return
		}
		got := WithoutText(Without([]byte(doc), p), "planted-token")
		if !json.Valid(got) {
			t.Fatalf("%s: got %s, want JSON", doc, got)
		}
		if v, ok := p.In(got); ok && string(v) != "null" {
			t.Fatalf("%s without %s: got %s there, want nothing", doc, pointer, v)
		}
		var all any
		if json.Unmarshal(got, &all) == nil {
			if b, _ := json.Marshal(all); strings.Contains(string(b), "planted-token") {
				t.Fatalf("%s: got %s, want the text gone", doc, got)
			}
		}
	})
}
