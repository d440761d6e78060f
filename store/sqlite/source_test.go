package sqlite

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var isStatement = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\s`)

// statements reads the package's own source, and that of what it has in common with
// other databases: each constant and each literal that is a whole statement, by its
// name or its words, and the functions that put one together while they run.
func statements(t *testing.T) (all map[string]string, built []string) {
	files, err := filepath.Glob("*.go")
	must(t, err)
	common, err := filepath.Glob("../internal/record/*.go")
	must(t, err)
	s := source{consts: map[string]ast.Expr{}, parts: map[string]bool{}, all: map[string]string{}}
	var decls []ast.Decl
	for _, name := range append(files, common...) {
		if !strings.HasSuffix(name, "_test.go") {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			must(t, err)
			decls = append(decls, file.Decls...)
		}
	}
	for _, d := range decls {
		s.declare(d)
	}
	for _, d := range decls {
		s.look(d)
	}
	for name, e := range s.consts {
		if text, ok := s.text(e); ok && isStatement.MatchString(text) && !s.parts[name] {
			s.all[name] = text
		}
	}
	return s.all, s.built
}

type source struct {
	consts map[string]ast.Expr
	parts  map[string]bool // constants that stand in a longer text
	all    map[string]string
	built  []string
}

func (s *source) declare(d ast.Decl) {
	g, ok := d.(*ast.GenDecl)
	if !ok || g.Tok != token.CONST {
		return
	}
	for _, spec := range g.Specs {
		if v, ok := spec.(*ast.ValueSpec); ok {
			for i := range v.Values {
				s.consts[v.Names[i].Name] = v.Values[i]
			}
		}
	}
}

// look finds the statements that a declaration holds.
func (s *source) look(d ast.Decl) {
	var own []string
	starts, grows := false, false
	ast.Inspect(d, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && a.Tok == token.ADD_ASSIGN {
			grows = true
		}
		e, ok := n.(ast.Expr)
		if !ok || !isText(e) {
			return true
		}
		first := s.mark(e)
		text, whole := s.text(e)
		switch {
		case whole && isStatement.MatchString(text):
			own = append(own, text)
		case isStatement.MatchString(first):
			starts, grows = true, true
		}
		return false
	})
	switch d := d.(type) {
	case *ast.FuncDecl:
		if grows && (starts || len(own) > 0) {
			s.built = append(s.built, d.Name.Name)
			return
		}
	case *ast.GenDecl:
		if d.Tok == token.CONST {
			return // by their names
		}
	}
	for _, text := range own {
		s.all[strings.Join(strings.Fields(text), " ")] = text
	}
}

// isText reports whether e may be a text: a literal, or a sum.
func isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return e.Op == token.ADD
	}
	return false
}

// mark notes the constants of a sum as parts, and returns the text that it begins with.
func (s *source) mark(e ast.Expr) string {
	sum, ok := e.(*ast.BinaryExpr)
	if !ok {
		text, _ := s.text(e)
		return text
	}
	for _, side := range []ast.Expr{sum.X, sum.Y} {
		switch side := side.(type) {
		case *ast.Ident:
			s.parts[side.Name] = true
		case *ast.SelectorExpr:
			s.parts[side.Sel.Name] = true
		}
	}
	s.mark(sum.Y)
	return s.mark(sum.X)
}

// text is the value of a constant text; false: it is none.
func (s *source) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		if is, ok := s.consts[e.Name]; ok {
			return s.text(is)
		}
	case *ast.SelectorExpr:
		return s.text(e.Sel)
	case *ast.BinaryExpr:
		x, ok := s.text(e.X)
		y, too := s.text(e.Y)
		return x + y, ok && too && e.Op == token.ADD
	}
	return "", false
}
