package markup

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tricky are pieces that mean something to one platform or another.
var tricky = []string{
	"a", "word", "snake_case_name", "*", "**b**", "_i_", "~s~", "~~", "`c`", "```", "\\", "<", ">", "&", "&amp;", "&#42;", "<!channel>", "<@U123>", "<#C1|x>",
	"@everyone", "@here", "[a](http://b.c)", "![i](x)", "[", "]", "(", ")", "<b>", "</b>", "<!--", "http://x.y/_z_?a=1&b=2", "https://a.b/c(d)", "|", "||spoiler||", "# ", "- ",
	"+ ", "1. ", "12) ", "===", "---", "> ", "    ", "\t", " ", " ", " ", "\n", "\n", "\n\n", "\r\n", "é", "ж", "漢字", "👩‍👩‍👧", "🇩🇪🇫🇷", "e\u0301", "\u00a0", "{", "}", "$x$", ":smile:", "!",
}

func plainText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(1, 60).Draw(t, "pieces")
		var b strings.Builder
		for range n {
			piece := rapid.SampledFrom(tricky).Draw(t, "piece")
			b.WriteString(strings.Repeat(piece, rapid.SampledFrom([]int{1, 1, 1, 1, 2, 3, 200}).Draw(t, "times")))
		}
		return b.String()
	})
}

var (
	backslash = regexp.MustCompile(`\\([!-/:-@\[-` + "`" + `{-~])`)
	foreign   = regexp.MustCompile(`&(amp|lt|gt);`)
)

// checkPlain checks one plain text in one flavour.
func checkPlain(t failer, words, flavour, unit string, limit int) {
	t.Helper()
	parts := Text{Words: words}.For(flavour, unit, limit)
	fits(t, parts, unit, limit)
	got := ""
	for _, p := range parts {
		switch flavour {
		case Plain:
			got += p
		case Telegram, Matrix:
			seen, _ := seenHTML(t, p)
			got += seen
			if n := strings.Count(p, "<") - strings.Count(p, "<br>"); n > 0 {
				t.Fatalf("got %q, want no tag in plain text", p)
			}
		case Markdown:
			seen, _, kinds := seenMarkdown(p)
			got += seen
			for kind := range kinds {
				if kind != "Document" && kind != "Paragraph" && kind != "Text" {
					t.Fatalf("got a %s from %q in %q, want plain text", kind, words, p)
				}
			}
		case Discord:
			got += backslash.ReplaceAllString(p, "$1")
		case Mrkdwn:
			if rest := foreign.ReplaceAllString(p, ""); strings.ContainsAny(rest, "<>&") {
				t.Fatalf("got %q, want <, > and & as entities", p)
			}
			got += foreign.ReplaceAllStringFunc(p, html.UnescapeString)
		}
	}
	sameText(t, flavour, solid(got), solid(words))
}

func TestPlainText(t *testing.T) {
	t.Run("a platform that reads plain text gets it to the byte", func(t *testing.T) {
		for _, words := range []string{"", " ", "  a\n\n\n b\t\n", "*x* <@U1> &amp; @everyone"} {
			if got := (Text{Words: words}).For(Plain, Bytes, 1000); len(got) != 1 || got[0] != words {
				t.Errorf("got %q, want %q", got, words)
			}
		}
	})

	t.Run("in every flavour, split or whole, it is seen as it was written", rapid.MakeCheck(func(t *rapid.T) {
		words := plainText().Draw(t, "words")
		flavour := rapid.SampledFrom([]string{Plain, Markdown, Mrkdwn, Discord, Telegram, Matrix}).Draw(t, "flavour")
		unit := rapid.SampledFrom([]string{Bytes, UTF16, Characters}).Draw(t, "unit")
		limit := rapid.SampledFrom([]int{0, 100, 101, 150, 400}).Draw(t, "limit")
		checkPlain(t, words, flavour, unit, limit)
	}))

	for _, c := range []struct{ flavour, words, want string }{
		{Mrkdwn, "<!channel> <@U1> a & b", "&lt;!channel&gt; &lt;@U1&gt; a &amp; b"},
		{Mrkdwn, "*done* 2 * 3", "*\u200bdone* 2 *\u200b 3"},
		{Mrkdwn, "https://x.y/_z_?a&b", "https://x.y/_z_?a&amp;b"},
		{Discord, "@everyone <@1> a_b _c_", "@\u200beveryone \\<@1\\> a_b \\_c\\_"},
		{Discord, "https://x.y/_z_", "https://x.y/_z_"},
		{Discord, "mail me@here.org", "mail me@here.org"},
		{Markdown, "# no\n1. no\n  in", "\\# no\\\n1\\. no\\\n&nbsp;&nbsp;in"},
		{Markdown, "[a](http://b)", `\[a\](http://b)`},
		{Telegram, "a < b & <b>c</b>", "a &lt; b &amp; &lt;b&gt;c&lt;/b&gt;"},
		{Matrix, "@room\n\n  x", "@\u200broom<br><br>&nbsp;&nbsp;x"},
	} {
		t.Run(c.flavour+": "+c.words, func(t *testing.T) {
			sameText(t, c.flavour, Text{Words: c.words}.For(c.flavour, UTF16, 0)[0], c.want)
		})
	}
}

func FuzzPlain(f *testing.F) {
	for i, s := range tricky {
		f.Add(s+tricky[(i*7)%len(tricky)], uint8(i), uint16(100+i))
	}
	f.Fuzz(func(t *testing.T, words string, which uint8, limit uint16) {
		words = strings.ReplaceAll(strings.ToValidUTF8(words, ""), "\r", "\n")
		flavour := []string{Plain, Markdown, Mrkdwn, Discord, Telegram, Matrix}[which%6]
		checkPlain(t, words, flavour, []string{Bytes, UTF16, Characters}[which/6%3], max(int(limit), Least))
	})
}
