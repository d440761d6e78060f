package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The manual of the keys is made of the structs: their tags and field comments.

const manualFile = "../docs/config.md"

var update = flag.Bool("update", false, "write docs/config.md anew")

const manualHead = `# Configuration: every key

Made from the config structs; ` + "`go test ./config -run TestManual -update`" + ` makes it anew.
[config.example.toml](../config.example.toml) is the same as a file to begin with.

TOML, strict: an unknown key, a wrong type or a value that is not allowed is a fault, and ` + "`leasehold check`" + ` tells all of
them at once, with file, line and column. No file at all is fine.

The file is the first of: ` + "`--config FILE`, `$LEASEHOLD_CONFIG`, `./leasehold.toml`," + ` the user's folder
(` + "`~/.config/leasehold`" + `), the system's (` + "`/etc/leasehold`" + `). Files ` + "`conf.d/*.toml`" + ` beside it are read after it, by name:
lists grow, other values replace. A variable of the environment replaces both; it is named beside each table.

Durations are written ` + "`\"30s\"`, `\"5m\"`, `\"1h\"`, `\"7d\"`; sizes `\"16MB\"` or `\"16MiB\"`" + `. Relative paths belong to the folder
of the file they stand in. A secret never stands in a file of the config; where one belongs, write ` + "`{ file = \"/path\" }`" + `
(mode 0600), ` + "`{ env = \"NAME\" }`" + ` (fixed until restart) or ` + "`{ credential = \"name\" }`" + ` (of the service manager).

A changed file is applied while leasehold runs, within seconds; ` + "`leasehold reload`" + ` applies it at once and says what changed.
A change of a key marked (restart) waits for a restart. A file that is not valid changes nothing, and ` + "`leasehold status`" + ` says so.

The keys of ` + "`[installation.config]`" + ` are the channel type's own: ` + "`leasehold types show websocket`" + ` lists those of one type,
[docs/channels](channels) explains them.
`

// comments reads the doc comments of the package's struct fields, as Struct.Field.
func comments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return false
			}
			for _, field := range s.Fields.List {
				for _, id := range field.Names {
					found[spec.Name.Name+"."+id.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
				}
			}
			return false
		})
	}
	return found
}

// manual writes the tables of a struct, each after its own plain keys.
type manual struct {
	t        *testing.T
	comments map[string]string
	out      strings.Builder
}

// says is what the comment of a field says, of the key instead of the field.
func (m *manual) says(owner reflect.Type, f field) string {
	name := owner.Field(f.index).Name
	text, ok := strings.CutPrefix(m.comments[owner.Name()+"."+name], name+" ")
	if !ok {
		m.t.Errorf("%s.%s: got the comment %q, want one that begins with its name", owner.Name(), name, m.comments[owner.Name()+"."+name])
	}
	return text
}

// table writes a struct's keys, and after them its tables. A header without keys
// of this version is left out.
func (m *manual) table(owner reflect.Type, path, header, about string) {
	list := strings.HasPrefix(header, "[[")
	var keys strings.Builder
	var inner []func()
	for _, f := range fields(owner) {
		at := dot(path, f.name)
		switch {
		case f.later():
		case shapeOf(f.typ) == tableShape:
			about := m.says(owner, f)
			inner = append(inner, func() { m.table(f.typ, at, "["+at+"]", about) })
		default:
			restart := ""
			if !list && !f.reloads() {
				restart = "(restart) "
			}
			fmt.Fprintf(&keys, "* `%s` %s%s\n", f.name, restart, m.says(owner, f))
		}
	}
	if keys.Len() > 0 {
		fmt.Fprintf(&m.out, "\n## `%s`\n\n`%[1]s` %s", header, about)
		if !list {
			fmt.Fprintf(&m.out, " Variables: `%s_…`.", envName(path))
		}
		fmt.Fprintf(&m.out, "\n\n%s", keys.String())
	}
	for _, write := range inner {
		write()
	}
}

func TestManual(t *testing.T) {
	m := &manual{t: t, comments: comments(t)}
	m.out.WriteString(manualHead)
	for _, f := range fields(configType) {
		switch {
		case f.later():
		case f.typ.Kind() == reflect.Slice:
			m.table(f.typ.Elem(), f.name, "[["+f.name+"]]", m.says(configType, f))
		default:
			m.table(f.typ, f.name, "["+f.name+"]", m.says(configType, f))
		}
	}
	if *update {
		if err := os.WriteFile(manualFile, []byte(m.out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(manualFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != m.out.String() {
		t.Errorf("%s: got other words than the structs', want the same; run go test ./config -run TestManual -update", manualFile)
	}
}
