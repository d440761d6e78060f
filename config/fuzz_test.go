package config

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// FuzzLoad holds any text against all the structs: no panic, and every fault at a
// place that the text has.
func FuzzLoad(f *testing.F) {
	if b, err := os.ReadFile(exampleFile); err == nil {
		f.Add(b)
		f.Add([]byte(commented.ReplaceAllString(string(b), "$1")))
	}
	for _, text := range []string{
		"[lease\nttl = 30s\n[[installation]]\nid='a'\ntype='socket'\n[installation.config]\nfree={a=[{b=1}]}\napp_token='x'\n",
		"a = [\n[1,2]\n[3]\n]\nb = \"\"\"x", "a.b.c = 1\n[a.b]\n[[a]]\n", "\ufeff[node]\r\nname='a'\r\n", "x={a={},b=[{}]}\nx.a.b=1\n[x.y]",
		"[[installation]]\nid='a'\ntype='socket'\nconfig.rules=[{pointer='/a',weight=-1}]\nconfig.url=1e999\n", "a=\xff\n#\x01\n=\n", "a = 1 b = 2\n[x]y",
	} {
		f.Add([]byte(text))
	}
	src, h := testSource("/"), testHost("/")
	f.Fuzz(func(t *testing.T, data []byte) {
		const file = "f.toml"
		w := newWalker(src, h)
		c := Default()
		tree, faults := parse(file, data)
		w.folder = "/"
		w.table(tree, reflect.ValueOf(c).Elem(), "", false)
		faults = append(faults, w.faults...)
		faults = append(faults, validate(c, w.where, w.bad, len(faults) > 0)...)
		faults.sort([]string{file})
		lines := strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n")
		last := Pos{}
		for _, x := range faults {
			// What is wrong with no key of the file stands at its beginning.
			if x.File != file && x.File != "" {
				t.Fatalf("%s: got file %q, want %s", x, x.File, file)
			}
			if x.File == file && (x.Line < 1 || x.Line > len(lines) || x.Col < 1 || x.Col > len(lines[x.Line-1])+1) {
				t.Fatalf("%s: got a place that the text does not have", x)
			}
			if x.Line < last.Line || x.Line == last.Line && x.Col < last.Col {
				t.Fatalf("%s: got it after %v, want the order of the text", x, last)
			}
			last = Pos{file, x.Line, x.Col}
			if s := x.String(); strings.ContainsAny(s, "\n\r\x00") {
				t.Fatalf("%q: got more than one line", s)
			}
		}
		for _, inst := range c.Installations {
			if !json.Valid(inst.Config) {
				t.Fatalf("got config %s, want JSON", inst.Config)
			}
		}
	})
}

// FuzzParse holds our tree against the library's own decoder: whatever it takes
// we take, with the same content, and the other way round.
func FuzzParse(f *testing.F) {
	if b, err := os.ReadFile(exampleFile); err == nil {
		f.Add(b)
		f.Add([]byte(commented.ReplaceAllString(string(b), "$1")))
	}
	for _, text := range []string{
		"a = 1\na = 2\n", "[a]\n[a]\n", "a.b = 1\n[a]\n", "a.b = 1\n[a.c]\nd = 1\n", "[a.b]\n[a]\nb.c = 1\n", "[[a]]\n[a.b]\n[[a]]\n[a.b]\n",
		"a = {b.c = 1, b.d = 2}\n", "a = {b = {c = 1}}\na.b.d = 1\n", "a = []\n[[a]]\n", "[[a]]\n[a]\n", "[a]\n[[a]]\n", "a = [{x = 1}, {x = [1.5, true, 'y']}]\n",
		"a = 0x1F\nb = 1_000\nc = +3\nd = 0b11\ne = 0o17\nf = -0\ng = 1e3\n", "[a.b.c]\n[a.b]\n[a]\n", "[[a.b]]\n[a]\nc = 1\n", "a = { b = 1,\n c = 2, }\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, faults := parse("f.toml", data)
		w := newWalker(Source{}, host{})
		w.free(tree, "x") // numbers out of range; the decoder refuses them, too
		var want map[string]any
		err := toml.Unmarshal([]byte(strings.TrimPrefix(string(data), "\ufeff")), &want)
		ours := len(faults)+len(w.faults) == 0
		if hasTime(tree) || hasOddFloat(string(data)) {
			return // no key takes a time, and JSON no infinity: both are refused where they are used
		}
		if ours != (err == nil) {
			t.Fatalf("%q: got faults %v %v, want as the decoder has it: %v", data, faults, w.faults, err)
		}
		if !ours {
			return
		}
		got, _ := tree.rawJSON()
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var a, z any
		if json.Unmarshal(got, &a) != nil || json.Unmarshal(b, &z) != nil || !reflect.DeepEqual(a, z) {
			t.Fatalf("%q: got %s, want %s", data, got, b)
		}
	})
}

func hasTime(n *node) bool {
	if n.kind == timeKind {
		return true
	}
	for _, e := range n.entries {
		if hasTime(e.value) {
			return true
		}
	}
	return slices.ContainsFunc(n.items, hasTime)
}

func hasOddFloat(text string) bool {
	return strings.Contains(text, "inf") || strings.Contains(text, "nan")
}
