package markup

import (
	"fmt"
	"net/url"
	"strings"
)

// destination is where a link goes, written so that no flavour reads anything but a URL
// in it; false: it goes nowhere that a reader of a chat could go, and is text.
func destination(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" && u.Opaque == "" {
		return "", false
	}
	switch u.Scheme {
	case "http", "https", "mailto", "tel", "ftp", "tg":
	default:
		return "", false
	}
	var b strings.Builder
	for _, c := range []byte(raw) {
		if c <= ' ' || c == 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	clean := b.String()
	if crowd.MatchString(clean) {
		clean = strings.ReplaceAll(clean, "@", "%40")
	}
	return clean, true
}

// says reports whether a link's text is where it goes.
func says(label, url string) bool { return label == url || "mailto:"+label == url }

func linkInWords(url, label string) pair {
	if says(label, url) {
		return pair{}
	}
	return pair{"", " (" + url + ")"}
}

// linkDiscord leaves a bare URL bare: Discord shows [url](url) as it is.
func linkDiscord(url, label string) pair {
	if says(label, url) {
		return pair{}
	}
	return linkMarkdown(url, label)
}

//nolint:gochecknoglobals // a table, never changed
var parentheses = strings.NewReplacer("(", "%28", ")", "%29")

func linkMarkdown(url, _ string) pair { return pair{"[", "](" + parentheses.Replace(url) + ")"} }

func linkMrkdwn(url, _ string) pair { return pair{"<" + entities.Replace(url) + "|", ">"} }

func linkHTML(url, _ string) pair { return pair{`<a href="` + entities.Replace(url) + `">`, "</a>"} }
