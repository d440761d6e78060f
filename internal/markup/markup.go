package markup

import (
	"fmt"
	"strings"
)

// Least is the smallest limit that a platform may have, in any unit: what stands around
// a text has room beside it.
const Least = 100

// CheckFlavour says why a flavour is none; "" stands for Plain.
func CheckFlavour(name string) error {
	if name != "" && flavours[name] == nil {
		return fmt.Errorf("want plain, markdown, mrkdwn, discord, telegram or matrix, not %q", name)
	}
	return nil
}

// CheckUnit says why a unit is none; "" stands for Bytes.
func CheckUnit(name string) error {
	switch name {
	case "", Bytes, UTF16, Characters:
		return nil
	}
	return fmt.Errorf("want bytes, utf16 or characters, not %q", name)
}

// CheckLimit says why a limit is none; 0 = there is none.
func CheckLimit(limit int) error {
	if limit != 0 && limit < Least {
		return fmt.Errorf("want at least %d, or 0 for no limit, not %d", Least, limit)
	}
	return nil
}

// Text is a text as somebody wrote it.
type Text struct {
	Words  string
	Marked bool // it is CommonMark
}

// For returns t as a platform reads it that knows a flavour, in parts of at most limit
// units; 0 = it has no limit. There is one part at least. An unknown flavour is Plain.
func (t Text) For(flavour, unit string, limit int) []string {
	f := flavours[flavour]
	if f == nil {
		f = flavours[Plain]
	}
	words := strings.ToValidUTF8(t.Words, "\uFFFD")
	if limit > 0 {
		limit = max(limit, Least)
	}
	if t.Marked && !dense(words) {
		parts, err := split(f, render(f, words, unit, limit), unit, limit)
		if err == nil && (len(parts) > 1 || parts[0] != "") {
			return parts
		}
		// Nothing of it would be seen, or what stands around it has no room.
	}
	if f == flavours[Plain] && (limit == 0 || size(words, unit) <= limit) {
		return []string{words}
	}
	parts, err := split(f, plainly(f, words), unit, limit)
	if err != nil { // no span is in it, and Least holds what is not to be cut
		panic("markup: " + err.Error())
	}
	return parts
}

// dense reports whether a text has more characters that may be markup than anybody
// writes. A parser takes a time for them that grows with their square: a fifth of a second
// for so many.
func dense(words string) bool {
	const most = 5000
	n := 0
	for i := range len(words) {
		if strings.IndexByte("*_[<>!", words[i]) >= 0 {
			n++
		}
	}
	return n > most
}

// plainly writes text of which each character stands for itself.
func plainly(f *flavour, words string) []token {
	w := writer{start: true}
	w.words(f, strings.ReplaceAll(words, "\r\n", "\n"), func(by weight) string {
		if by == betweenParagraphs {
			return f.paragraph
		}
		return f.hardBreak
	})
	return w.tokens
}
