package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxWords is how many bytes of a platform's words are kept: enough for a sentence,
// and short enough for a line in a log.
const MaxWords = 200

// Words makes what a platform says fit to be shown: one line, bounded, without the
// secrets of the installation, which some servers repeat in their errors. Hide is
// called before the first use; then it is safe for concurrent use.
type Words struct {
	redact *Redactor
	hidden []string // what it knows
}

// NewWords makes a Words that knows no secret.
func NewWords() *Words { return &Words{redact: New()} }

// Hide registers values that nobody may see; those shorter than MinLength are not
// replaced.
func (w *Words) Hide(values ...string) {
	for _, value := range values {
		if value = strings.TrimSpace(value); w.redact.Add(value) {
			w.hidden = append(w.hidden, value)
		}
	}
}

// Show returns what was said as it may be shown.
func (w *Words) Show(said string) string {
	said = strings.ToValidUTF8(said, "\uFFFD")
	said = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, said)
	said = strings.Join(strings.Fields(w.redactCut(w.redact.String(said))), " ")
	if len(said) <= MaxWords {
		return said
	}
	cut := MaxWords
	for !utf8.RuneStart(said[cut]) {
		cut--
	}
	return said[:cut] + "…"
}

// Error is err with a text that may be shown: before, then what err says. What it
// wraps is for decisions only.
func (w *Words) Error(before string, err error) error {
	return &shown{before + w.Show(err.Error()), err}
}

// shown is an error whose text is free of secrets.
type shown struct {
	text string
	err  error
}

func (s *shown) Error() string { return s.text }
func (s *shown) Unwrap() error { return s.err }

// redactCut takes out secrets that stand there without their end: a close reason
// has at most 123 bytes, an answer is read to 1,024, and some servers shorten
// what they repeat.
func (w *Words) redactCut(said string) string {
	for _, secret := range w.hidden {
		head := secret[:min(len(secret), max(MinLength, min(len(secret)/4, 12)))]
		for from := 0; ; {
			i := strings.Index(said[from:], head)
			if i < 0 {
				break
			}
			start := from + i
			end := start + len(head)
			for n := len(head); end < len(said) && n < len(secret) && said[end] == secret[n]; n++ {
				end++
			}
			said = said[:start] + Placeholder + said[end:]
			from = start + len(Placeholder)
		}
	}
	return said
}

// InHeader lists the parts of a header's value that a server may repeat: the value,
// the credential after a scheme (Bearer, Basic), the values of cookies.
func InHeader(value string) []string {
	all := []string{value}
	scheme, credential, ok := strings.Cut(value, " ")
	if ok {
		all = append(all, strings.TrimSpace(credential))
	}
	if strings.EqualFold(scheme, "basic") {
		if b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(credential)); err == nil {
			_, password, _ := strings.Cut(string(b), ":")
			all = append(all, password)
		}
	}
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return r == ';' || r == ',' }) {
		if _, v, ok := strings.Cut(part, "="); ok {
			all = append(all, strings.Trim(v, `" `))
		}
	}
	return all
}

// longWord is the length from which a value may be a credential, whatever its name:
// shorter ones are the protocol's own words.
const longWord = 16

// InURL lists the parts of a URL that may be credentials: user and password, and
// values of the query that are long or whose name says so.
func InURL(u *url.URL) []string {
	var all []string
	if u.User != nil {
		password, _ := u.User.Password()
		all = append(all, password, u.User.Username())
	}
	for key, values := range u.Query() {
		for _, v := range values {
			if len(v) >= longWord || secretKey.MatchString(key) {
				all = append(all, v)
			}
		}
	}
	return all
}

var secretKey = regexp.MustCompile(`(?i)token|key|secret|pass|auth|sig|ticket`)

// InFrame lists the strings of a frame that may be credentials: the long ones of
// JSON, all of any other.
func InFrame(frame string) []string {
	var tree any
	if json.Unmarshal([]byte(frame), &tree) != nil {
		return []string{frame}
	}
	var all []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if len(v) >= longWord {
				all = append(all, v)
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(tree)
	return all
}
