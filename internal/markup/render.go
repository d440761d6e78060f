package markup

import (
	"html"
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// deepest is how deep quotes, lists and spans may nest; what is deeper stands where the
// deepest one does. It keeps what stands around a text, and the stack, small.
const deepest = 8

//nolint:gochecknoglobals // made once, never changed
var commonMark = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)
})

// renderer writes a document for one flavour.
type renderer struct {
	writer
	f      *flavour
	source []byte
	unit   string
	most   int // of a URL, in units

	indent string // what lines begin with here
	depth  int    // of lists, quotes and spans
	quotes int
	one    bool // all is to be on one line
	link   bool
	styles [2]bool // bold, italic
}

// render reads CommonMark and writes it for a flavour. A URL that takes half of a part
// of limit units is no link.
func render(f *flavour, words, unit string, limit int) []token {
	r := &renderer{writer: writer{start: true}, f: f, source: []byte(words), unit: unit, most: limit / 2}
	r.blocks(commonMark().Parse(text.NewReader(r.source)), false)
	return r.tokens
}

// newLine is what begins a line of the block that is being written.
func (r *renderer) newLine(by weight) string {
	switch {
	case r.f.blocks && by == betweenParagraphs:
		return ""
	case by == betweenParagraphs:
		return "\n" + strings.TrimRight(r.indent, " ") + "\n" + r.indent
	default:
		return r.f.lineBreak + r.indent
	}
}

// blocks writes what is in a block, close together or with blank lines.
func (r *renderer) blocks(parent ast.Node, tight bool) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil {
			switch {
			case r.f.blocks && r.depth < deepest: // what is too deep has no element of its own
				r.gap("", betweenParagraphs)
			case tight || r.f.blocks:
				r.gap(r.newLine(betweenLines), betweenLines)
			default:
				r.gap(r.newLine(betweenParagraphs), betweenParagraphs)
			}
		}
		r.block(n)
	}
}

func (r *renderer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		r.heading(n)
	case *ast.Paragraph:
		r.paragraph(n)
	case *ast.TextBlock:
		r.inlines(n)
	case *ast.ThematicBreak:
		r.piece(r.f.rule)
	case *ast.Blockquote:
		r.quote(n)
	case *ast.List:
		r.list(n)
	case *ast.CodeBlock:
		r.code("", r.lines(n))
	case *ast.FencedCodeBlock:
		r.code(string(n.Language(r.source)), r.lines(n))
	case *ast.HTMLBlock:
		all := r.lines(n)
		if n.HasClosure() {
			closure := n.ClosureLine
			all += string(closure.Value(r.source))
		}
		r.words(r.f, strings.Trim(all, "\n"), r.newLine)
	case *ast.LinkReferenceDefinition:
	default:
		r.blocks(n, false)
	}
}

// lines are those of a block that is no markup.
func (r *renderer) lines(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(r.source))
	}
	return b.String()
}

// around writes a span, or without one what is too deep for it.
func (r *renderer) around(s span, what func()) {
	if r.depth >= deepest || s.open == "" && s.close == "" && s.again == "" {
		what()
		return
	}
	r.depth++
	r.begin(s)
	what()
	r.end()
	r.depth--
}

func (r *renderer) paragraph(n ast.Node) {
	if !r.f.blocks {
		r.inlines(n)
		return
	}
	r.around(span{open: "<p>", again: "<p>", close: "</p>"}, func() { r.inlines(n) })
}

func (r *renderer) heading(n *ast.Heading) {
	p := r.f.heading(n.Level)
	r.one = true
	bold := r.styles[0]
	r.styles[0] = p == r.f.bold && p != pair{}
	r.around(span{open: p.open, again: p.open, close: p.close, bound: r.f.bounded}, func() { r.inlines(n) })
	r.one, r.styles[0] = false, bold
}

func (r *renderer) quote(n ast.Node) {
	if r.quotes >= r.f.quoteMost || r.depth >= deepest {
		r.blocks(n, false)
		return
	}
	s := span{open: r.f.quote.open, again: r.f.quote.open, close: r.f.quote.close}
	indent := r.indent
	if s.open == "" {
		s.open, s.again = "> ", "> "
		r.indent += "> "
	}
	r.quotes++
	r.around(s, func() { r.start = true; r.blocks(n, false) })
	r.quotes--
	r.indent = indent
}

func (r *renderer) list(n *ast.List) {
	if r.f.blocks {
		r.elements(n)
		return
	}
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		if item.PreviousSibling() != nil {
			by := betweenParagraphs
			if n.IsTight {
				by = betweenLines
			}
			r.gap(r.newLine(by), by)
		}
		mark := r.f.bullet
		switch {
		case n.IsOrdered():
			mark = strconv.Itoa(number) + string(rune(n.Marker))
		case mark == "":
			mark = string(rune(n.Marker))
		}
		mark += " "
		number++
		s, indent := span{open: mark}, r.indent
		if r.f.anew {
			s.again = mark
		}
		if r.depth < deepest {
			r.indent += strings.Repeat(" ", len([]rune(mark)))
		}
		r.around(s, func() { r.start = true; r.blocks(item, n.IsTight) })
		r.indent = indent
	}
}

// elements is a list in HTML.
func (r *renderer) elements(n *ast.List) {
	all := span{open: "<ul>", again: "<ul>", close: "</ul>"}
	from := func(number int) string { return `<ol start="` + strconv.Itoa(number) + `">` }
	if n.IsOrdered() {
		all = span{open: from(n.Start), close: "</ol>"}
		all.again = all.open
	}
	if r.depth >= deepest-1 { // an item does not stand alone
		r.blocks(n, false)
		return
	}
	number := n.Start
	r.around(all, func() {
		for item := n.FirstChild(); item != nil; item = item.NextSibling() {
			one := span{open: "<li>", again: "<li>", close: "</li>"}
			if n.IsOrdered() {
				one.outer = from(number)
				number++
			}
			r.gap("", betweenLines)
			r.around(one, func() { r.blocks(item, n.IsTight) })
		}
	})
}

// code writes a code block, line by line.
func (r *renderer) code(info, content string) {
	content = strings.TrimRight(content, "\n")
	p := r.f.fence(language(info), content)
	s := span{open: p.open, close: p.close, code: p != pair{}}
	line := "\n" + r.indent
	if r.f.fenceBreak {
		s.open, s.close = s.open+line, line+s.close
	}
	s.again = s.open
	// It is safe only in its span, so that is there however deep it is.
	r.begin(s)
	for i, l := range strings.Split(content, "\n") {
		if i > 0 {
			r.gap(line, betweenLines)
		}
		r.piece(r.f.inCode(l))
	}
	r.end()
}

// language is the first word of a fence's info string, as far as it is a name.
func language(info string) string {
	info = resolve(info)
	const most = 20
	for i := range len(info) {
		if c := info[i]; i == most || !isAlphanumeric(c) && (i == 0 || strings.IndexByte("+#-_.", c) < 0) {
			return ""
		}
	}
	return info
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// resolve returns text without its backslashes, and with what its entities stand for.
func resolve(s string) string {
	if !strings.ContainsAny(s, "\\&") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", s[i+1]) >= 0:
			i++
			b.WriteByte(s[i])
		case s[i] == '&' && entity.MatchString(s[i:]):
			name := entity.FindString(s[i:])
			b.WriteString(html.UnescapeString(name))
			i += len(name) - 1
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
