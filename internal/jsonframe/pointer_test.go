package jsonframe

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// The examples of RFC 6901, section 5.
const rfc6901 = `{"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8}`

func TestPointerFindsWhatRFC6901Says(t *testing.T) {
	for p, want := range map[string]string{
		"": rfc6901, "/foo": `["bar", "baz"]`, "/foo/0": `"bar"`, "/": "0", "/a~1b": "1", "/c%d": "2", "/e^f": "3", "/g|h": "4",
		`/i\j`: "5", `/k"l`: "6", "/ ": "7", "/m~0n": "8",
	} {
		parsed, err := ParsePointer(p)
		if err != nil {
			t.Errorf("%q: %v", p, err)
			continue
		}
		if got, ok := parsed.In([]byte(rfc6901)); !ok || string(got) != want {
			t.Errorf("%q: got %s, %v, want %s", p, got, ok, want)
		}
	}
}

func TestPointer(t *testing.T) {
	for _, c := range []struct{ name, doc, p, want string }{
		{"a nested value", ` { "a" : { "b" : [ 1 , { "c" : "x" } ] } } `, "/a/b/1/c", `"x"`},
		{"the last of equal names", `{"a":1,"a":2}`, "/a", "2"},
		{"the last of equal names, where only the first goes on", `{"a":{"b":1},"a":2}`, "/a/b", ""},
		{"a name written with escapes", `{"\u0061":1}`, "/a", "1"},
		{"a missing name", `{"a":1}`, "/b", ""},
		{"a missing element", `[1,2]`, "/2", ""},
		{"the element after the last", `[1,2]`, "/-", ""},
		{"an element with a leading zero", `[1,2]`, "/01", ""},
		{"an element with a sign", `[1,2]`, "/+1", ""},
		{"an element of an object", `{"0":1}`, "/0", "1"},
		{"a name of an array", `[1]`, "/a", ""},
		{"a way through a scalar", `{"a":1}`, "/a/b", ""},
		{"braces inside strings", `{"a":"}{][,:\"","b":1}`, "/b", "1"},
		{"an empty object", `{}`, "/a", ""},
		{"an empty array", `[]`, "/0", ""},
		{"a scalar document", `5`, "/a", ""},
		{"nothing", ``, "/a", ""},
		{"what stands before the cut", `{"id":"x","text":"cut sho`, "/id", `"x"`},
		{"what is cut itself", `{"id":"x`, "/id", ""},
		{"what is no JSON", `hello`, "/a", ""},
		{"what looks like JSON", `{"a" 1}`, "/a", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := ParsePointer(c.p)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := p.In([]byte(c.doc))
			if string(got) != c.want || ok != (c.want != "") {
				t.Errorf("got %s, %v, want %s", got, ok, c.want)
			}
		})
	}
}

func TestParsePointerRefusesWhatIsNone(t *testing.T) {
	for _, p := range []string{"a", "a/b", "/~", "/~2", "/a~", "/~0~"} {
		if _, err := ParsePointer(p); err == nil {
			t.Errorf("%q: got no error, want one", p)
		}
	}
}

func TestAPointerSurvivesDepth(t *testing.T) {
	deep := []byte(strings.Repeat(`[`, 1<<20))
	if _, ok := (Pointer{"0", "0"}).In(deep); ok {
		t.Error("got a value from an endless array, want none")
	}
	if _, ok := (Pointer{"a"}).In(append([]byte(`{"a":`), deep...)); ok {
		t.Error("got a value from an endless array, want none")
	}
}

// reference is the plain way to do what Pointer.In does.
func reference(p Pointer, doc []byte) (any, bool) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil, false
	}
	for _, name := range p {
		switch x := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = x[name]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || strconv.Itoa(i) != name || i < 0 || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func FuzzPointer(f *testing.F) {
	f.Add("/foo/0", []byte(rfc6901))
	f.Add("/a/b", []byte(`{"a":{"b":1},"a":{"b":[true,null]}}`))
	f.Add("/k\"l", []byte(`{"k\"l":"\ud800","x":[[],{}]}`))
	f.Add("", []byte(` 1 `))
	f.Fuzz(func(t *testing.T, s string, doc []byte) {
		p, err := ParsePointer(s)
		if err != nil {
			return
		}
		got, ok := p.In(doc)
		if !json.Valid(doc) || !utf8.Valid(doc) {
			return // it must not crash
		}
		want, wantOK := reference(p, doc)
		if ok != wantOK {
			t.Fatalf("%q in %s: got %s, %v, want %v, %v", s, doc, got, ok, want, wantOK)
		}
		if !ok {
			return
		}
		a, errA := json.Marshal(want)
		again, _ := reference(nil, got)
		b, errB := json.Marshal(again)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Fatalf("%q in %s: got %s, want %s", s, doc, b, a)
		}
	})
}
