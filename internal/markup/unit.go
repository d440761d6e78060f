package markup

import (
	"unicode"
	"unicode/utf8"
)

// The units in which platforms count a text.
const (
	Bytes      = "bytes"      // of its UTF-8
	UTF16      = "utf16"      // units of UTF-16, as JavaScript and Java count
	Characters = "characters" // code points
)

// size is how long s is in a unit; Bytes, when it is none that is known: no other counts more.
func size(s, unit string) int {
	switch unit {
	case Characters:
		return utf8.RuneCountInString(s)
	case UTF16:
		n := 0
		for _, r := range s {
			n++
			if r > 0xffff {
				n++
			}
		}
		return n
	default:
		return len(s)
	}
}

// atom is the length in bytes of the first piece of s that is not to be cut: an escape, or
// what is seen as one character. It is a simplification of UAX #29 that may keep
// together more than that, and of nothing more than sixteen code points.
func atom(s string) int {
	if s[0] == '&' {
		if n := len(entity.FindString(s)); n > 0 {
			return n
		}
	}
	if len(s) > 1 && s[0] == '\\' && s[1] == '&' { // the backslash may be text, in HTML
		return 1 + atom(s[1:])
	}
	if len(s) > 1 && s[0] == '\\' && s[1] < utf8.RuneSelf {
		return 2
	}
	const most = 16
	r, n := utf8.DecodeRuneInString(s)
	flags := isFlag(r)
	for count := 1; n < len(s) && count < most; count++ {
		next, size := utf8.DecodeRuneInString(s[n:])
		joined := r == zwj || next == zwj || flags && isFlag(next) || isModifier(next)
		if !joined {
			break
		}
		flags = flags && !isFlag(next) // two make one
		r, n = next, n+size
	}
	return n
}

const zwj = '\u200d' // joins what is before with what is after

func isFlag(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

func isModifier(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc) || r >= 0x1f3fb && r <= 0x1f3ff || r >= 0xe0020 && r <= 0xe007f
}
