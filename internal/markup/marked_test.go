package markup

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// author writes CommonMark of words that it keeps: those of text begin with w, those in
// code blocks with c.
type author struct {
	t           *rapid.T
	n           int
	words, code []string
}

func (a *author) pick(what string, n int) int { return rapid.IntRange(0, n-1).Draw(a.t, what) }

// word is a new one, rarely a long one.
func (a *author) word(first string) string {
	a.n++
	w := first
	for n := a.n; n > 0; n /= 20 {
		w += string(rune('a' + n%20))
	}
	if a.pick("long", 40) == 0 {
		w += strings.Repeat("x", 200)
	}
	a.words = append(a.words, w)
	if first == "c" {
		a.code = append(a.code, w)
	}
	return w
}

func (a *author) inline() string {
	var b strings.Builder
	for range a.pick("inlines", 12) + 1 {
		switch w := a.word("w"); a.pick("inline", 12) {
		case 0:
			b.WriteString("**" + w + " " + a.word("w") + "**")
		case 1:
			b.WriteString("*" + w + "*")
		case 2:
			b.WriteString("`" + w + "`")
		case 3:
			b.WriteString("[" + w + " *" + a.word("w") + "*](https://e.x/?a=1&b=2 \"title\")")
		case 4:
			b.WriteString("***" + w + "** " + a.word("w") + "*")
		case 5:
			b.WriteString(w + "\n" + a.word("w"))
		case 6:
			b.WriteString(w + "\\\n" + a.word("w"))
		case 7:
			b.WriteString("![" + w + "](https://e.x/i.png)")
		case 8:
			b.WriteString("&lt;" + w + "&amp;")
		default:
			b.WriteString(w)
		}
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

func (a *author) block(depth int) string {
	kinds := 4
	if depth > 0 {
		kinds = 8
	}
	switch a.pick("block", kinds) {
	case 0:
		return "## " + strings.NewReplacer("\\\n", " ", "\n", " ").Replace(a.inline())
	case 1:
		lines := []string{"```go"}
		for range a.pick("lines", 8) + 1 {
			lines = append(lines, strings.Repeat(" ", a.pick("indent", 5))+a.word("c")+" "+a.word("c"))
			if a.pick("blank", 4) == 0 {
				lines = append(lines, "")
			}
		}
		return strings.Join(append(lines, "```"), "\n")
	case 2, 3:
		return a.inline()
	case 4, 5:
		return within("> ", "> ", a.blocks(depth-1))
	case 6:
		return within("- ", "  ", a.blocks(depth-1)) + "\n" + within("- ", "  ", a.blocks(depth-1))
	default:
		return within("7. ", "   ", a.blocks(depth-1)) + "\n\n" + within("8. ", "   ", a.inline())
	}
}

func (a *author) blocks(depth int) string {
	var all []string
	for range a.pick("blocks", 3) + 1 {
		all = append(all, a.block(depth))
	}
	return strings.Join(all, "\n\n")
}

func within(first, rest, s string) string { return first + strings.ReplaceAll(s, "\n", "\n"+rest) }

// letters are those of the words of an author.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, s)
}

func TestMarkdown(t *testing.T) {
	t.Run("split or whole, no word is lost, and none leaves its code block or gets into one", rapid.MakeCheck(func(t *rapid.T) {
		a := &author{t: t}
		source := a.blocks(3)
		flavour := rapid.SampledFrom([]string{Plain, Markdown, Mrkdwn, Discord, Telegram, Matrix}).Draw(t, "flavour")
		unit := rapid.SampledFrom([]string{Bytes, UTF16, Characters}).Draw(t, "unit")
		limit := rapid.SampledFrom([]int{0, 250, 333, 1000}).Draw(t, "limit")
		parts := Text{Words: source, Marked: true}.For(flavour, unit, limit)
		fits(t, parts, unit, limit)
		all, code := "", ""
		for _, p := range parts {
			var seen, block string
			switch flavour {
			case Telegram, Matrix:
				seen, block = seenHTML(t, p)
			case Markdown:
				seen, block, _ = seenMarkdown(p)
			default:
				if n := strings.Count(p, "```"); n%2 != 0 {
					t.Fatalf("got %d fences in %q, want each block ended", n, p)
				}
				continue
			}
			all, code = all+seen, code+block
		}
		if all == "" {
			return
		}
		sameText(t, "words of\n"+source+"\n as\n"+strings.Join(parts, "\n====\n"), letters(all), strings.Join(a.words, ""))
		sameText(t, "code of\n"+source, letters(code), strings.Join(a.code, ""))
	}))

	const source = "# Title\n\nHello **bold *it* and *it*** `co<d>e` & [li*n*k](https://a.b/c_(d)?x=1&y=2 \"t\") <https://auto.io> <b>raw</b>\nnext  \nhard @everyone <!channel> 2 \\* 3 a_b\n\n" +
		"- one\n  - two\n- three\n\n3. four\n4. five\n\n> said\n> ```go\n> x := `a`\n>\n> // ``` y\n> ```\n\n---\n\n[bad](javascript:alert(1)) [rel](/x) &copy;"
	for flavour, want := range map[string][]string{
		Plain: {
			"Title\n\nHello bold it and it co<d>e & link (https://a.b/c_(d)?x=1&y=2) https://auto.io <b>raw</b>\nnext\nhard @everyone <!channel> 2 * 3 a_b",
			"• one\n  • two\n• three\n\n3. four\n4. five", "> said\n>\n> x := `a`\n> \n> // ``` y", "———\n\nbad (javascript:alert(1)) rel (/x) ©",
		},
		Markdown: {
			"# Title\n\nHello **bold *it* and *it*** `co<d>e` & [li*n*k](https://a.b/c_%28d%29?x=1&y=2) [https://auto.io](https://auto.io) \\<b\\>raw\\</b\\>\nnext\\\nhard @\u200beveryone \\<!channel\\> 2 \\* 3 a_b",
			"- one\n  - two\n- three\n\n3. four\n4. five", "> said\n>\n> ````go\n> x := `a`\n> \n> // ``` y\n> ````", "---\n\nbad (javascript:alert(1)) rel (/x) ©",
		},
		Mrkdwn: {
			"*Title*\n\nHello *bold _it_ and _it_* `co&lt;d&gt;e` &amp; <https://a.b/c_(d)?x=1&amp;y=2|li\u200b_n_\u200bk> <https://auto.io|https://auto.io> &lt;b&gt;raw&lt;/b&gt;\nnext\nhard @everyone &lt;!channel&gt; 2 *\u200b 3 a_b",
			"• one\n  • two\n• three\n\n3. four\n4. five", "> said\n>\n> ```\n> x := `a`\n> \n> // `\u200b`\u200b` y\n> ```",
		},
		Discord: {
			"# Title\n\nHello **bold *it* and *it*** `co<d>e` & [li*n*k](https://a.b/c_%28d%29?x=1&y=2) https://auto.io \\<b\\>raw\\</b\\>\nnext\nhard @\u200beveryone \\<!channel\\> 2 \\* 3 a_b",
			"- one\n  - two\n- three\n\n3. four\n4. five", "> said\n>\n> ```go\n> x := `a`\n> \n> // `\u200b`\u200b` y\n> ```",
		},
		Telegram: {
			"<b>Title</b>\n\nHello <b>bold <i>it</i> and <i>it</i></b> <code>co&lt;d&gt;e</code> &amp; <a href=\"https://a.b/c_(d)?x=1&amp;y=2\">li<i>n</i>k</a> <a href=\"https://auto.io\">https://auto.io</a> &lt;b&gt;raw",
			"• one\n  • two\n• three\n\n3. four\n4. five", "<blockquote>said\n\n<pre><code class=\"language-go\">x := `a`\n\n// ``` y</code></pre></blockquote>",
		},
		Matrix: {
			"<h1>Title</h1><p>Hello <strong>bold <em>it</em> and <em>it</em></strong> <code>co&lt;d&gt;e</code> &amp; <a href=\"https://a.b/c_(d)?x=1&amp;y=2\">li<em>n</em>k</a>",
			"next<br>hard @\u200beveryone", "<ul><li>one<ul><li>two</li></ul></li><li>three</li></ul><ol start=\"3\"><li>four</li><li>five</li></ol>",
			"<blockquote><p>said</p><pre><code class=\"language-go\">x := `a`\n\n// ``` y</code></pre></blockquote><hr><p>bad (javascript:alert(1)) rel (/x) ©</p>",
		},
	} {
		t.Run("as "+flavour, func(t *testing.T) {
			got := Text{Words: source, Marked: true}.For(flavour, UTF16, 0)[0]
			for _, w := range want {
				if !strings.Contains(got, w) {
					t.Errorf("got\n%s\nwant in it\n%s", got, w)
				}
			}
		})
	}

	t.Run("what nobody would see is shown as it was written", func(t *testing.T) {
		for _, words := range []string{"[a]: http://b.c", strings.Repeat("*a_", 5000)} {
			if got := (Text{Words: words, Marked: true}).For(Plain, Bytes, 0); got[0] != words {
				t.Errorf("got %q, want %q", got, words)
			}
		}
	})
}

func TestSplit(t *testing.T) {
	sixty := strings.TrimSpace(strings.Repeat("word ", 12))
	for _, c := range []struct {
		name, flavour, words string
		want                 []string
	}{
		{"between paragraphs rather than lines", Plain, sixty + "\n\nab\ncd " + sixty, []string{sixty, "ab\ncd " + sixty}},
		{"between lines rather than words", Plain, sixty + "\nab " + sixty, []string{sixty, "ab " + sixty}},
		{"between words rather than within one", Plain, sixty + " " + sixty, []string{strings.TrimSpace(strings.Repeat("word ", 20)), "word word word word"}},
		{"not where next to nothing would be left", Plain, "a\n\n" + sixty + " " + sixty, []string{"a\n\n" + strings.TrimSpace(strings.Repeat("word ", 19)), "word word word word word"}},
		{"within a word that no part could hold", Plain, strings.Repeat("x", 150), []string{strings.Repeat("x", 100), strings.Repeat("x", 50)}},
		{"never within an emoji", Plain, strings.Repeat("x", 97) + "👩‍👩‍👧", []string{strings.Repeat("x", 97), "👩‍👩‍👧"}},
		{"a code block ends and begins again with its language", Markdown, "```go\n" + sixty + "\n" + sixty + "\n```", []string{"```go\n" + sixty + "\n```", "```go\n" + sixty + "\n```"}},
		{"bold ends and begins again", Telegram, "**" + sixty + " " + sixty + "**", []string{"<b>" + strings.TrimSpace(strings.Repeat("word ", 18)) + "</b>", "<b>word word word word word word</b>"}},
		{"a link goes to the same place in both parts", Mrkdwn, "[" + sixty + " " + sixty + "](https://a.b)", []string{
			"<https://a.b|" + strings.TrimSpace(strings.Repeat("word ", 17)) + ">", "<https://a.b|word word word word word word word>",
		}},
		{"a list goes on with its number", Matrix, "7. " + sixty + "\n8. " + sixty, []string{`<ol start="7"><li>` + sixty + "</li></ol>", `<ol start="8"><li>` + sixty + "</li></ol>"}},
		{"a quote goes on as one", Discord, "> " + sixty + "\n> " + sixty, []string{"> " + sixty, "> " + sixty}},
		{"what begins a part begins no list", Markdown, sixty + " aaaa bbbb cccc dddd eeee ffff gggg hhhh 1\\. " + sixty, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Text{Words: c.words, Marked: c.flavour != Plain}.For(c.flavour, UTF16, 100)
			if c.want != nil && !slices.Equal(got, c.want) {
				t.Errorf("got %s\nwant %s", strings.Join(quoted(got), "\n"), strings.Join(quoted(c.want), "\n"))
			}
			for _, p := range got {
				if _, _, kinds := seenMarkdown(p); c.flavour == Markdown && kinds["List"] > 0 {
					t.Errorf("got a list in %q, want none", p)
				}
			}
		})
	}
}

func quoted(all []string) (q []string) {
	for _, s := range all {
		q = append(q, fmt.Sprintf("%q", s))
	}
	return q
}

func FuzzMarkdown(f *testing.F) {
	for i, s := range tricky {
		f.Add(s+" "+tricky[(i*5)%len(tricky)]+"\n> - "+s, uint8(i), uint16(i))
	}
	f.Add("> 1. ```go\n>    a\n>    ```\n\n***a** b* [c](https://d.e \"f\") <g@h.i>", uint8(4), uint16(100))
	f.Fuzz(func(t *testing.T, words string, which uint8, limit uint16) {
		flavour, unit := []string{Plain, Markdown, Mrkdwn, Discord, Telegram, Matrix}[which%6], []string{Bytes, UTF16, Characters}[which/6%3]
		most := max(int(limit), Least)
		parts := Text{Words: words, Marked: true}.For(flavour, unit, most)
		fits(t, parts, unit, most)
		for _, p := range parts {
			switch flavour {
			case Telegram, Matrix:
				seenHTML(t, p)
			case Mrkdwn:
				for _, m := range tag.FindAllString(p, -1) {
					if !strings.HasPrefix(m, "<http") && !strings.HasPrefix(m, "<mailto:") && !strings.HasPrefix(m, "<tel:") && !strings.HasPrefix(m, "<ftp:") && !strings.HasPrefix(m, "<tg:") {
						t.Fatalf("got %q in %q, want only links", m, p)
					}
				}
			}
		}
	})
}
