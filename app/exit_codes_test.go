package app

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"leasehold/internal/fault"
)

func TestExitCodes(t *testing.T) {
	t.Run("every code of the program is documented, but those of what is not in this version", func(t *testing.T) {
		notYet := []string{strconv.Itoa(fault.ExitNotInstalled)}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "internal", "fault", "fault.go"), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for _, e := range exitCodes() {
			got = append(got, strconv.Itoa(e.code))
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Exit") {
				if code := v.Values[0].(*ast.BasicLit).Value; !slices.Contains(notYet, code) {
					want = append(want, code)
				}
			}
			return true
		})
		if !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
