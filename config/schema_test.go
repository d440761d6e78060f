package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTheStructsAreTheManual(t *testing.T) {
	documented := map[string]string{}
	for _, file := range []string{"config.go", "delivery.go", "upkeep.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, name := range field.Names {
						documented[spec.Name.Name+"."+name.Name] = field.Doc.Text()
					}
				}
			}
			return true
		})
	}
	var visit func(reflect.Type)
	visit = func(s reflect.Type) {
		for _, f := range fields(s) {
			name := s.Name() + "." + s.Field(f.index).Name
			doc := documented[name]
			if !strings.HasPrefix(doc, s.Field(f.index).Name+" ") || !strings.Contains(doc, ".") {
				t.Errorf("%s: got comment %q, want a sentence that begins with the field's name", name, doc)
			}
			elem := f.typ
			if elem.Kind() == reflect.Slice {
				elem = elem.Elem()
			}
			table := shapeOf(elem) == tableShape
			hasDefault := f.tag.Get("default") != "" || regexp.MustCompile(`[Dd]efault`).MatchString(doc)
			required := f.tag.Get("required") != "" || slices.Contains([]string{"Target.URL", "Target.Command", "Target.Installation", "Target.Conversation"}, name)
			if !table && !hasDefault && !required && f.tag.Get("later") != "true" {
				t.Errorf("%s: got no default in tag or comment, want one", name)
			}
			if table {
				visit(elem)
			}
		}
	}
	visit(configType)
}

func TestKeysOfLaterVersions(t *testing.T) {
	t.Run("there are none", func(t *testing.T) {
		keysOf(configType, "", false, func(path string, _ field, later bool) {
			if later {
				t.Errorf("got %s, want it in this version", path)
			}
		})
	})
	t.Run("one would be refused with its name", func(t *testing.T) {
		var c struct {
			Next int `toml:"next" later:"true"`
		}
		tree, faults := parse("leasehold.toml", []byte("next = 1\n"))
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		w := newWalker(Source{}, testHost("/"))
		w.table(tree, reflect.ValueOf(&c).Elem(), "", false)
		if len(w.faults) != 1 || w.faults[0].String() != "leasehold.toml:1:1: next: not in this version" || c.Next != 0 {
			t.Errorf("got %v, want one fault: not in this version", w.faults)
		}
	})
}

func TestVariablesOfKeysAreUnique(t *testing.T) {
	seen := map[string]string{}
	keysOf(configType, "", false, func(path string, _ field, _ bool) {
		name := envName(path)
		if other, twice := seen[name]; twice {
			t.Errorf("got %s for both %s and %s, want one each", name, path, other)
		}
		seen[name] = path
	})
}
