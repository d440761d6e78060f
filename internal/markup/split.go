package markup

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// errNarrow: not even one character has room beside what must stand around it.
var errNarrow = errors.New("the limit leaves no room for text")

// level is a span within another, down to the text. Levels are never changed, so that
// many places of a text can refer to them.
type level struct {
	span   *span
	around *level
	closes int // what it and those around it take to end, in units
}

// cut is a place at which a part may end.
type cut struct {
	at     int    // the part's length there, in bytes; 0 = it is none
	ends   *level // what is to be ended there
	resume int    // the token with which the next part begins
	within *level // what that is in
}

// splitter makes parts of tokens.
type splitter struct {
	tokens []token
	lead   func(string) string // see flavour
	unit   string
	limit  int

	parts   []string
	part    []byte
	size    int
	seen    bool           // the part has text
	within  *level         // where the next token is
	written *level         // what of that the part has begun
	pending []token        // gaps and begins that are written with the next text
	begun   map[*span]bool // in an earlier part
	late    [weights]cut   // the latest of each weight, in the last three quarters of the part
	early   cut            // the latest in the first quarter
	ended   bool           // a span that wants a boundary has just ended
}

// split writes tokens of a flavour in parts of at most limit units; 0 = there is no limit.
func split(f *flavour, tokens []token, unit string, limit int) ([]string, error) {
	if limit <= 0 {
		limit = math.MaxInt
	}
	s := &splitter{tokens: tokens, lead: f.lead, unit: unit, limit: limit, begun: map[*span]bool{}}
	for i := 0; i < len(tokens); {
		next, err := s.take(i)
		if err != nil {
			return nil, err
		}
		i = next
	}
	return s.finish(), nil
}

func (s *splitter) units(text string) int { return size(text, s.unit) }

// take writes token i, or ends the part before it, and returns which one is next.
func (s *splitter) take(i int) (int, error) {
	switch t := s.tokens[i]; t.kind {
	case gap:
		s.pending = append(s.pending, t)
	case begin:
		s.within = &level{t.span, s.within, s.units(t.span.close) + s.within.closing()}
		s.pending = append(s.pending, token{kind: begin, span: t.span, s: t.span.open})
	case end:
		s.end()
	default:
		return s.text(i)
	}
	return i + 1, nil
}

func (l *level) closing() int {
	if l == nil {
		return 0
	}
	return l.closes
}

// code reports whether it is within code.
func (l *level) code() bool {
	for ; l != nil; l = l.around {
		if l.span.code {
			return true
		}
	}
	return false
}

// end ends the latest span. One of which nothing was written is forgotten.
func (s *splitter) end() {
	span := s.within.span
	s.within = s.within.around
	if n := slices.IndexFunc(s.pending, func(t token) bool { return t.span == span }); n >= 0 {
		s.pending = slices.Delete(s.pending, n, n+1)
		return
	}
	s.write(span.close)
	s.written, s.ended = s.within, span.bound
}

func (s *splitter) write(text string) {
	s.part = append(s.part, text...)
	s.size += size(text, s.unit)
}

// text writes token i if it has room with what is pending. If it has none, the part
// ends at the best place so far; where there is none, within the text.
func (s *splitter) text(i int) (int, error) {
	word := s.tokens[i].s
	if s.lead != nil && !s.seen && len(s.parts) > 0 && !s.within.code() {
		word = s.lead(word)
	}
	before, by, parted := s.before(word)
	if parted {
		s.mark(by, i)
	}
	room := s.limit - s.size - s.units(before) - s.within.closing()
	if s.units(word) <= room {
		s.add(before, word)
		return i + 1, nil
	}
	if c, ok := s.best(word); ok {
		s.cut(c)
		return c.resume, nil
	}
	n := 0
	for n < len(word) {
		next := n + atom(word[n:])
		if room -= s.units(word[n:next]); room < 0 {
			break
		}
		n = next
	}
	if n == 0 && !s.seen {
		return i, errNarrow
	}
	if n > 0 {
		s.add(before, word[:n])
		s.tokens[i].s = word[n:]
	}
	s.cut(s.here(i))
	return i, nil
}

// before is what is written with a word, in front of it: what is pending. parted says
// that a gap is in it, at which the part could end, and by what.
func (s *splitter) before(word string) (before string, by weight, parted bool) {
	var b strings.Builder
	last := func() rune {
		return cmp.Or(lastRune(b.String()), lastRune(string(s.part[max(0, len(s.part)-utf8.UTFMax):])))
	}
	for _, t := range s.pending {
		switch {
		case t.kind == begin && t.span.bound && isWord(last()):
			b.WriteString(breaker + t.s)
		case t.kind == begin:
			b.WriteString(t.s)
		case s.seen:
			by, parted = max(by, t.weight), true
			b.WriteString(t.s)
		}
	}
	if s.ended && len(s.pending) == 0 && isWord(firstRune(word)) {
		b.WriteString(breaker)
	}
	return b.String(), by, parted
}

func (s *splitter) add(before, word string) {
	s.write(before)
	s.write(word)
	s.pending, s.seen, s.ended, s.written = s.pending[:0], true, false, s.within
}

// here is a cut in front of what is pending, or of token i.
func (s *splitter) here(i int) cut { return cut{len(s.part), s.written, i, s.within} }

// mark notes that the part can end here.
func (s *splitter) mark(by weight, i int) {
	if s.size < s.limit/4 {
		s.early = s.here(i)
		return
	}
	s.late[by] = s.here(i)
}

// best is where the part ends for want of room for a word: at the end of a paragraph
// rather than of a line or a word, unless too little would be left of it.
func (s *splitter) best(word string) (cut, bool) {
	for by := weights - 1; by >= 0; by-- {
		if c := s.late[by]; c.at > 0 {
			return c, true
		}
	}
	whole := s.units(word) + s.within.closing()
	for l := s.within; l != nil; l = l.around {
		whole += s.units(l.span.again) + s.units(l.span.outer)
	}
	return s.early, s.early.at > 0 && whole <= s.limit
}

// cut ends the part, and begins the next one.
func (s *splitter) cut(c cut) {
	part := s.part[:c.at]
	for l := c.ends; l != nil; l = l.around {
		part = append(part, l.span.close...)
		s.begun[l.span] = true
	}
	s.parts = append(s.parts, string(part))
	s.part, s.size, s.seen, s.ended = s.part[:0], 0, false, false
	s.late, s.early = [weights]cut{}, cut{}
	s.within, s.written, s.pending = c.within, nil, s.pending[:0]
	inner := ""
	for l := c.within; l != nil; l = l.around {
		open := l.span.open
		if s.begun[l.span] {
			open = cmp.Or(inner, l.span.again)
		}
		s.pending = append(s.pending, token{kind: begin, span: l.span, s: open})
		inner = l.span.outer
	}
	slices.Reverse(s.pending)
}

// finish ends the last part.
func (s *splitter) finish() []string {
	if s.seen || len(s.parts) == 0 {
		s.parts = append(s.parts, string(s.part))
	}
	return s.parts
}
