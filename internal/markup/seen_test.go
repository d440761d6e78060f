package markup

import (
	"html"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// failer is a test, or a check of rapid's.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

var (
	tag     = regexp.MustCompile(`<[^<>]*>`)
	allowed = regexp.MustCompile(`^<(/?(b|i|strong|em|code|pre|blockquote|p|ul|ol|li|h[1-6]|a)|br|hr|a href="[^"<>]*"|code class="language-[\w+#.-]+"|ol start="\d+")>$`)
	alone   = []string{"<br>", "<hr>"}
)

// seenHTML is the text that a reader sees, and what of it is in a code block. Tags that
// are not allowed, or do not end as they began, are an error.
func seenHTML(t failer, part string) (all, code string) {
	t.Helper()
	var open []string
	rest := part
	for rest != "" {
		at := tag.FindStringIndex(rest)
		if at == nil {
			at = []int{len(rest), len(rest)}
		}
		words := rest[:at[0]]
		if strings.ContainsAny(words, "<>") {
			t.Fatalf("got %q in %q, want < and > as entities", words, part)
		}
		all += html.UnescapeString(words)
		if slices.Contains(open, "pre") {
			code += html.UnescapeString(words)
		}
		name := rest[at[0]:at[1]]
		rest = rest[at[1]:]
		switch {
		case name == "" || slices.Contains(alone, name):
			all += " "
		case !allowed.MatchString(name):
			t.Fatalf("got the tag %q in %q, want only those that are allowed", name, part)
		case name[1] != '/':
			open = append(open, strings.Fields(strings.Trim(name, "<>"))[0])
		case len(open) == 0 || open[len(open)-1] != strings.Trim(name, "</>"):
			t.Fatalf("got %s in %q where %v is open, want tags that end as they began", name, part, open)
		default:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Fatalf("got %v open at the end of %q, want all tags ended", open, part)
	}
	return all, code
}

// seenMarkdown is the same of CommonMark, with the kinds of its nodes.
func seenMarkdown(part string) (all, code string, kinds map[string]int) {
	source, kinds := []byte(part), map[string]int{}
	_ = ast.Walk(commonMark().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		kinds[n.Kind().String()]++
		switch n := n.(type) {
		case *ast.Text:
			s := string(n.Segment.Value(source))
			if n.Parent().Kind() != ast.KindCodeSpan && !n.IsRaw() {
				s = resolve(s)
			}
			all += s
			if n.SoftLineBreak() || n.HardLineBreak() {
				all += "\n"
			}
		case *ast.FencedCodeBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				all += string(line.Value(source))
				code += string(line.Value(source))
			}
		}
		return ast.WalkContinue, nil
	})
	return all, code, kinds
}

// solid is a text without what may be lost or come in between.
func solid(s string) string {
	return strings.Map(func(r rune) rune {
		if isSpace(r) || r == '\u200b' || r == '\u00a0' || r == 0 || r == '\uFFFD' {
			return -1
		}
		return r
	}, s)
}

func sameText(t failer, what, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %q, want %q", what, got, want)
	}
}

// fits checks that no part is longer than the limit.
func fits(t failer, parts []string, unit string, limit int) {
	t.Helper()
	for _, p := range parts {
		if n := size(p, unit); limit > 0 && n > limit {
			t.Fatalf("got a part of %d %s, want at most %d: %q", n, unit, limit, p)
		}
	}
}
