package websocket

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"leasehold/internal/redact"
)

// maxWords is how much of a platform's words is kept: enough for a sentence, and
// short enough for a line in a log.
const maxWords = 200

// hide registers a value that nobody may see.
func (p *plan) hide(value string) {
	if value = strings.TrimSpace(value); p.redact.Add(value) {
		p.hidden = append(p.hidden, value)
	}
}

// words makes what the platform said fit to be shown: one line, bounded, without
// our secrets, which some servers repeat in their errors.
func (p *plan) words(said string) string {
	said = strings.ToValidUTF8(said, "\uFFFD")
	said = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, said)
	said = strings.Join(strings.Fields(p.redactCut(p.redact.String(said))), " ")
	if len(said) <= maxWords {
		return said
	}
	cut := maxWords
	for !utf8.RuneStart(said[cut]) {
		cut--
	}
	return said[:cut] + "…"
}

// redactCut takes out secrets that stand there without their end: a close reason
// has at most 123 bytes, an answer is read to 1,024, and some servers shorten
// what they repeat.
func (p *plan) redactCut(said string) string {
	for _, secret := range p.hidden {
		head := secret[:min(len(secret), max(redact.MinLength, min(len(secret)/4, 12)))]
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
			said = said[:start] + redact.Placeholder + said[end:]
			from = start + len(redact.Placeholder)
		}
	}
	return said
}

// headerSecrets are the parts of a header's value that a server may repeat: the
// value, the credential after a scheme (Bearer, Basic), the values of cookies.
func headerSecrets(value string) []string {
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

// jsonStrings are the strings of a frame that may be credentials: 16 bytes and
// more, since shorter ones are the protocol's own words.
func jsonStrings(frame string) []string {
	var tree any
	if json.Unmarshal([]byte(frame), &tree) != nil {
		return []string{frame}
	}
	var all []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if len(v) >= 16 {
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
