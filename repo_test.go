package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"leasehold/internal/need"
)

// The repository keeps promises that no compiler knows: about its words, its
// documents, and what a channel type may do.

// tracked returns the repository's files, by slash-separated path.
func tracked(t *testing.T, pattern string) (files []string) {
	t.Helper()
	need.Tool(t, "git", "git")
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--", pattern).Output()
	if err != nil {
		t.Fatalf("list the repository's files: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if _, err := os.Stat(name); err == nil { // not one that is being removed
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		t.Fatalf("got no file like %q, want some", pattern)
	}
	return files
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func parse(t *testing.T, fset *token.FileSet, name string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(fset, filepath.FromSlash(name), nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestEveryPackageSaysWhatItPromises(t *testing.T) {
	documented := map[string]bool{} // by directory
	for _, name := range tracked(t, "*.go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f := parse(t, token.NewFileSet(), name)
		want := "Package " + f.Name.Name + " "
		if f.Name.Name == "main" {
			want = "Command "
		}
		dir := path.Dir(name)
		documented[dir] = documented[dir] || strings.HasPrefix(f.Doc.Text(), want)
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: got no package comment, want one that says what the package promises", dir)
		}
	}
}

func TestWords(t *testing.T) {
	// Spelled in two parts, so that this file does not hold them.
	everywhere := regexp.MustCompile(`\.\./` + `shared|/` + `work/|(?i:\b` + `issue #?\d)`)
	code := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`)
	skip := regexp.MustCompile(`\b(t|tb|b|f)\.Skip(f|Now)?\(`)
	for _, name := range tracked(t, "*") {
		for i, line := range strings.Split(read(t, name), "\n") {
			if m := everywhere.FindString(line); m != "" {
				t.Errorf("%s:%d: got %q, want nothing that only one machine or tracker knows", name, i+1, m)
			}
			if path.Ext(name) != ".go" {
				continue
			}
			if m := code.FindString(line); m != "" {
				t.Errorf("%s:%d: got %q, want it done, or said in the documents", name, i+1, m)
			}
			if skip.MatchString(line) && path.Dir(name) != "internal/need" {
				t.Errorf("%s:%d: got a skipped test, want one that asks internal/need", name, i+1)
			}
		}
	}
}

func TestDocuments(t *testing.T) {
	t.Run("the README can be read in one sitting", func(t *testing.T) {
		if n := strings.Count(read(t, "README.md"), "\n"); n >= 150 {
			t.Errorf("README.md: got %d lines, want fewer than 150", n)
		}
	})

	t.Run("every link to a file leads somewhere", func(t *testing.T) {
		link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
		for _, name := range tracked(t, "*.md") {
			for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
				if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
					continue
				}
				if _, err := os.Stat(filepath.FromSlash(path.Join(path.Dir(name), m[1]))); err != nil {
					t.Errorf("%s: link to %s: %v", name, m[1], err)
				}
			}
		}
	})

	t.Run("every make target that they name exists", func(t *testing.T) {
		target := regexp.MustCompile(`(?m)^([a-z]+):`)
		exists := map[string]bool{}
		for _, m := range target.FindAllStringSubmatch(read(t, "Makefile"), -1) {
			exists[m[1]] = true
		}
		named := 0
		for _, c := range commands(t, "make") {
			named++
			if word := c.words[0]; !exists[word] {
				t.Errorf("%s: got make %s, want a target of the Makefile", c.file, word)
			}
		}
		if named == 0 {
			t.Error("got no make command in any document, want some")
		}
	})

	t.Run("every command of leasehold that they name exists", func(t *testing.T) {
		binary := filepath.Join(t.TempDir(), "leasehold.exe") // a name that every system runs
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
		help := func(args ...string) (string, error) {
			out, err := exec.CommandContext(t.Context(), binary, append(args, "--help")...).CombinedOutput()
			return string(out), err
		}
		named := 0
		for _, c := range commands(t, "leasehold") {
			named++
			text, err := help(c.words[0])
			if err != nil {
				t.Errorf("%s: leasehold %s: %v", c.file, c.words[0], err)
				continue
			}
			_, list, hasList := strings.Cut(text, "Available Commands:")
			if len(c.words) > 1 && hasList && !strings.Contains(list, "\n  "+c.words[1]+" ") {
				t.Errorf("%s: got leasehold %s, want one of%s", c.file, strings.Join(c.words, " "), list)
			}
		}
		if named == 0 {
			t.Error("got no leasehold command in any document, want some")
		}
	})
}

// A promise in the list of promises names a test that exists, and so does what the
// evidence names.
func TestGuaranteesAreBacked(t *testing.T) {
	row := regexp.MustCompile(`(?m)^\| [A-Z` + "`" + `].*\|$`)
	cell := regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z]+)`")
	promises := row.FindAllString(read(t, "docs/guarantees.md"), -1)
	if len(promises) == 0 {
		t.Fatal("got no promise, want some")
	}
	_, evidence, _ := strings.Cut(read(t, "docs/evidence.md"), "<!-- end of scenarios -->")
	elsewhere := regexp.MustCompile(`(?m)^\| [a-z].*`+"`"+` \|$`).FindAllString(evidence, -1)
	if len(elsewhere) == 0 {
		t.Error("got no scenario with a test of its own, want some")
	}
	for _, p := range append(promises, elsewhere...) {
		named := cell.FindAllStringSubmatch(p, -1)
		if named == nil {
			t.Errorf("got no test behind %s, want one", p)
		}
		for _, n := range named {
			found := false
			for _, name := range tracked(t, n[1]+"/*_test.go") {
				found = found || strings.Contains(read(t, name), "\nfunc "+n[2]+"(t *testing.T) {")
			}
			if !found {
				t.Errorf("got no test %s in %s, want the one that %s names", n[2], n[1], p)
			}
		}
	}
}

// command is a command line that a document shows: where, and its first words up
// to a flag, an argument in capitals or a sign.
type command struct {
	file  string
	words []string
}

// commands finds the program's command lines in the documents' code: spans and
// fenced blocks, so that prose may make sure of things.
func commands(t *testing.T, program string) (all []command) {
	t.Helper()
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	line := regexp.MustCompile(`(?m)(?:^|[\s;&|(` + "`" + `/])` + program + `((?: +[a-z][a-z-]*)+)(?:$|[\s` + "`" + `;&|)=])`)
	for _, name := range tracked(t, "*.md") {
		for _, span := range code.FindAllString(read(t, name), -1) {
			for _, m := range line.FindAllStringSubmatch(span, -1) {
				all = append(all, command{name, strings.Fields(m[1])})
			}
		}
	}
	return all
}

// A channel type starts goroutines and dials through its Link only: that is how
// the engine catches its panics and closes its sockets under it.
func TestChannelTypesStayOnTheirLink(t *testing.T) {
	types := 0
	for _, name := range tracked(t, "channel/*/*.go") {
		parts := strings.Split(name, "/")
		if len(parts) != 3 || parts[1] == "channeltest" || strings.HasSuffix(name, "_test.go") {
			continue // a fake, the suite, a test: the far end of the wire
		}
		types++
		fset := token.NewFileSet()
		ast.Inspect(parse(t, fset, name), func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: got a go statement, want Link.Go", fset.Position(n.Pos()))
			case *ast.CallExpr:
				f, ok := n.Fun.(*ast.SelectorExpr)
				if ok && isIdent(f.X, "websocket") && f.Sel.Name == "Dial" && !hasClient(n) {
					t.Errorf("%s: got websocket.Dial with a client of its own, want HTTPClient from the Link", fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
	if types == 0 {
		t.Error("got no source of a channel type, want some")
	}
}

// hasClient reports whether a call's last argument is &websocket.DialOptions{…}
// with an HTTPClient.
func hasClient(call *ast.CallExpr) bool {
	ref, ok := call.Args[len(call.Args)-1].(*ast.UnaryExpr)
	if !ok {
		return false
	}
	options, ok := ref.X.(*ast.CompositeLit)
	if !ok {
		return false
	}
	for _, e := range options.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok && isIdent(kv.Key, "HTTPClient") {
			return true
		}
	}
	return false
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
