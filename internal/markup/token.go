package markup

import "strings"

// weight says how well a text may be cut at a gap.
type weight int8

const (
	betweenWords weight = iota
	betweenLines
	betweenParagraphs
	weights
)

type kind int8

const (
	seen  kind = iota // by the reader; cut only where it is longer than a part
	gap               // between two texts; gone where it is cut
	begin             // of a span
	end               // of the latest span that began
)

// token is a piece of what is written for a platform. A span of which no text is seen
// is not written at all.
type token struct {
	kind   kind
	weight weight
	s      string // of a text or a gap
	span   *span
}

// span is what stands around texts and must not be cut without its end.
type span struct {
	open  string
	again string // in place of open, in the part after a cut
	close string
	outer string // what the span around it then has in place of its again; "" = that
	code  bool   // its text is safe only within it
	bound bool   // a word's boundary has to be on either side
}

// writer collects tokens.
type writer struct {
	tokens []token
	prev   rune // the last of the text before, within the same span
	start  bool // nothing of the line is written yet
}

func (w *writer) piece(s string) {
	if s != "" {
		w.tokens = append(w.tokens, token{kind: seen, s: s})
	}
}

func (w *writer) gap(s string, by weight) {
	w.tokens = append(w.tokens, token{kind: gap, s: s, weight: by})
	w.prev, w.start = ' ', by > betweenWords || w.start
}

func (w *writer) begin(s span) {
	w.tokens = append(w.tokens, token{kind: begin, span: &s})
	w.prev = 0
}

func (w *writer) end() {
	w.tokens = append(w.tokens, token{kind: end})
	w.prev = 0
}

// words writes text that is to be seen as it is, its white space as gaps. line is what
// begins a new line, for each of its weights.
func (w *writer) words(f *flavour, s string, line func(weight) string) {
	for s != "" {
		n := strings.IndexFunc(s, isSpace)
		if n < 0 {
			n = len(s)
		}
		if n > 0 {
			w.piece(f.escape(s[:n], place{start: w.start, prev: w.prev}))
			w.prev, w.start = lastRune(s[:n]), false
			s = s[n:]
			continue
		}
		rest := strings.TrimLeftFunc(s, isSpace)
		w.space(f, s[:len(s)-len(rest)], line)
		s = rest
	}
}

// isSpace reports what words are parted by; a space that must not be broken is none.
func isSpace(r rune) bool { return r == ' ' || r == '\n' || r == '\t' || r == '\r' }

// space writes white space.
func (w *writer) space(f *flavour, s string, line func(weight) string) {
	switch breaks := strings.Count(s, "\n"); breaks {
	case 0:
		w.gap(f.spaces(s, w.start), betweenWords)
		return
	case 1:
		w.gap(line(betweenLines), betweenLines)
	default:
		blank := strings.TrimPrefix(line(betweenLines), "\\") // a hard break ends no paragraph
		w.gap(strings.Repeat(blank, breaks-2)+line(betweenParagraphs), betweenParagraphs)
	}
	if indent := s[strings.LastIndexByte(s, '\n')+1:]; indent != "" {
		w.gap(f.spaces(indent, true), betweenWords)
	}
}

// spaces are several spaces in a row, at the start of a line or within it, for a reader
// who makes one of them, or none.
func (f *flavour) spaces(s string, start bool) string {
	switch {
	case start && f.indent != "":
		return strings.Repeat(f.indent, len(s))
	case start || f.space == "" || s == " ":
		return s
	default:
		return strings.Repeat(f.space, len(s)-1) + " "
	}
}
