package markup

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// place is where a word stands.
type place struct {
	start bool // first of its line
	prev  rune // before it; 0 = nothing, or the end of a span
}

// entities are what HTML and Slack want instead of their own characters.
//
//nolint:gochecknoglobals // a table, never changed
var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// breaker keeps apart what would mean something together, and is not seen.
const breaker = "\u200b"

var (
	crowd  = regexp.MustCompile(`(?i)(^|[^\pL\pN_])@(everyone|here|channel|all|room)\b`)
	entity = regexp.MustCompile(`^&(#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{0,30});`)
	number = regexp.MustCompile(`^\d{1,9}[.)]`)
)

// unmention keeps a text from calling everybody.
func unmention(word string) string {
	if !strings.Contains(word, "@") {
		return word
	}
	return crowd.ReplaceAllString(word, "$1@"+breaker+"$2")
}

// isURL reports whether a platform would make a link of the word by itself, in which an
// escape would end it.
func isURL(word string) bool {
	return strings.HasPrefix(word, "https://") || strings.HasPrefix(word, "http://")
}

// escapeMarkdown writes a backslash at the end of a word as an entity: it may stand in
// front of one that breaks the line, which not every parser tells apart.
func escapeMarkdown(word string, at place) string {
	if rest, ok := strings.CutSuffix(word, `\`); ok {
		if rest == "" {
			return "&#92;"
		}
		return escapeMarkdown(rest, at) + "&#92;"
	}
	return escapeWith(word, at, "\\`*[]<>|~_", func(rest string) bool { return entity.MatchString(rest) })
}

// escapeDiscord leaves alone what stands in a URL, of which Discord makes a link.
func escapeDiscord(word string, at place) string {
	special := "\\`*[]<>|~_"
	if isURL(word) {
		special = "\\`*[]<>|"
	}
	return escapeWith(word, at, special, func(string) bool { return false })
}

// escapeWith puts a backslash before what would be markup: the characters of special,
// but for an underscore within a word, an & for which amp says so, and at the start of a
// line what begins a block.
func escapeWith(word string, at place, special string, amp func(rest string) bool) string {
	word = unmention(word)
	var b strings.Builder
	prev := at.prev
	for i, r := range word {
		switch {
		case r == '_' && isWord(prev) && isWord(firstRune(word[i+1:])): // within a word it is none
		case r < utf8.RuneSelf && strings.ContainsRune(special, r),
			r == '&' && amp(word[i:]):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		prev = r
	}
	if at.start {
		return leadMarkdown(b.String())
	}
	return b.String()
}

// leadMarkdown keeps a word that is escaped, or the rest of one that was cut, from
// beginning a block, or emphasis, where it begins a line.
func leadMarkdown(word string) string {
	if strings.IndexByte("#+-=_", word[0]) >= 0 {
		return "\\" + word
	}
	if dot := len(number.FindString(word)) - 1; dot > 0 {
		return word[:dot] + "\\" + word[dot:]
	}
	return word
}

// leadMrkdwn keeps the rest of a word that was cut from beginning bold or italic.
func leadMrkdwn(word string) string {
	if strings.IndexByte("*_~", word[0]) >= 0 {
		return word[:1] + breaker + word[1:]
	}
	return word
}

// escapeMrkdwn has no backslash to use: what would begin bold, italic or code is kept
// from the word before which it stands.
func escapeMrkdwn(word string, at place) string {
	if isURL(word) {
		return entities.Replace(word)
	}
	var b strings.Builder
	prev := at.prev
	for _, r := range word {
		b.WriteRune(r)
		if strings.ContainsRune("*_~`", r) && !isWord(prev) || r == '`' {
			b.WriteString(breaker)
		}
		prev = r
	}
	return entities.Replace(b.String())
}

// breakFences keeps code from ending the code block that it is in.
func breakFences(code string) string {
	return strings.ReplaceAll(code, "```", "`"+breaker+"`"+breaker+"`")
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func firstRune(s string) rune {
	if s == "" {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func lastRune(s string) rune {
	if s == "" {
		return 0
	}
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}
