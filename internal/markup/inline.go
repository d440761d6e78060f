package markup

import (
	"strings"

	"github.com/yuin/goldmark/ast"
)

// inlines writes what is in a line of text.
func (r *renderer) inlines(parent ast.Node) {
	pending := "" // text that goes on in the next node
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			if next, ok := n.NextSibling().(*ast.Text); ok && joined(n, next) {
				pending += r.value(n)
				continue
			}
			r.run(n, pending+r.value(n))
			pending = ""
		case *ast.String:
			r.words(r.f, resolve(string(n.Value)), r.newLine)
		case *ast.CodeSpan:
			r.inlineCode(plainOf(n, r.source))
		case *ast.Emphasis:
			r.emphasis(n)
		case *ast.Link:
			r.linked(n, resolve(string(n.Destination)))
		case *ast.Image:
			r.linked(n, resolve(string(n.Destination)))
		case *ast.AutoLink:
			r.autoLink(n)
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				s := n.Segments.At(i)
				r.words(r.f, string(s.Value(r.source)), r.oneLine)
			}
		default:
			r.inlines(n)
		}
	}
}

// joined reports whether a text goes on in the next one: what could have been a
// delimiter, and is none, is a node of its own.
func joined(n, next *ast.Text) bool {
	return !n.SoftLineBreak() && !n.HardLineBreak() && n.IsRaw() == next.IsRaw()
}

// value is the text of a node.
func (r *renderer) value(n *ast.Text) string {
	s := string(n.Segment.Value(r.source))
	if n.IsRaw() {
		return s
	}
	return resolve(s)
}

// run writes a run of text that ends with a node, with the end of its line.
func (r *renderer) run(n *ast.Text, s string) {
	r.words(r.f, s, r.oneLine)
	switch {
	case !n.SoftLineBreak() && !n.HardLineBreak():
	case r.one || r.link:
		r.gap(" ", betweenWords)
	case n.HardLineBreak():
		r.gap(r.f.hardBreak+r.indent, betweenLines)
	default:
		r.gap(r.newLine(betweenLines), betweenLines)
	}
}

// oneLine begins no new line, in text that can have none but by an entity.
func (r *renderer) oneLine(weight) string { return " " }

func (r *renderer) inlineCode(content string) {
	p, ok := r.f.code(content)
	if !ok {
		r.words(r.f, content, r.oneLine)
		return
	}
	r.begin(span{open: p.open, again: p.open, close: p.close, code: p != pair{}})
	r.piece(r.f.inCode(content))
	r.end()
}

func (r *renderer) emphasis(n *ast.Emphasis) {
	which, p := 1, r.f.italic
	if n.Level > 1 {
		which, p = 0, r.f.bold
	}
	if r.styles[which] { // it is already
		r.inlines(n)
		return
	}
	r.styles[which] = true
	r.around(span{open: p.open, again: p.open, close: p.close, bound: r.f.bounded}, func() { r.inlines(n) })
	r.styles[which] = false
}

// linked writes a link, or an image as a link to it.
func (r *renderer) linked(n ast.Node, dest string) {
	label := plainOf(n, r.source)
	url, ok := destination(dest)
	switch {
	case r.link: // a link within a link is none
		r.inlines(n)
	case !ok || r.depth >= deepest || r.most > 0 && size(url, r.unit) > r.most:
		r.inlines(n)
		if dest != "" && !says(label, dest) {
			if label != "" {
				r.gap(" ", betweenWords)
				dest = "(" + dest + ")"
			}
			r.words(r.f, dest, r.oneLine)
		}
	default:
		r.link = true
		p := r.f.link(url, strings.TrimSpace(label))
		r.around(span{open: p.open, again: p.open, close: p.close}, func() {
			if label == "" {
				r.words(r.f, url, r.oneLine)
			}
			r.inlines(n)
		})
		r.link = false
	}
}

func (r *renderer) autoLink(n *ast.AutoLink) {
	dest, label := string(n.URL(r.source)), string(n.Label(r.source))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(dest), "mailto:") {
		dest = "mailto:" + dest
	}
	url, ok := destination(dest)
	if !ok || r.link || r.depth >= deepest || r.most > 0 && size(url, r.unit) > r.most {
		r.words(r.f, label, r.oneLine)
		return
	}
	p := r.f.link(url, label)
	r.around(span{open: p.open, again: p.open, close: p.close}, func() { r.words(r.f, label, r.oneLine) })
}

// plainOf is the text within a node, as it is seen.
func plainOf(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		t, ok := n.(*ast.Text)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		s := string(t.Segment.Value(source))
		if !t.IsRaw() && n.Parent().Kind() != ast.KindCodeSpan {
			s = resolve(s)
		}
		b.WriteString(strings.TrimSuffix(s, "\n"))
		if t.SoftLineBreak() || t.HardLineBreak() || strings.HasSuffix(s, "\n") {
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}
