package delivery

import (
	"strings"

	"leasehold/internal/redact"
)

// oneLine puts text from outside on one line and takes our secrets out of it.
func oneLine(secrets *redact.Redactor, text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return secrets.String(strings.Join(strings.Fields(text), " "))
}

// short cuts text to n bytes. It is cut after secrets were taken out: one that is
// cut in two is not found.
func short(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
