package markup

import (
	"fmt"
	"strings"
)

// The flavours: what a platform reads.
const (
	Plain    = "plain"    // nothing is markup
	Markdown = "markdown" // CommonMark
	Mrkdwn   = "mrkdwn"   // Slack's: *bold*, <url|text>
	Discord  = "discord"  // Discord's dialect of Markdown
	Telegram = "telegram" // the HTML of Telegram's parse_mode
	Matrix   = "matrix"   // the HTML of Matrix' formatted_body
)

// pair stands around a text.
type pair struct{ open, close string }

// flavour says how a platform writes what CommonMark knows. A pair of nothing leaves
// the text as it is.
type flavour struct {
	escape       func(word string, at place) string // text; no white space is in it
	lead         func(escaped string) string        // the first word of a part; nil = as it is
	inCode       func(string) string                // text of a code span or block
	space        string                             // the first of several spaces in a row; "" = they all count
	indent       string                             // a space at the start of a line; "" = it is one
	bold, italic pair
	code         func(content string) (p pair, ok bool)
	fence        func(info, content string) pair // its ends without their line breaks
	fenceBreak   bool                            // whether line breaks stand inside its ends
	link         func(url, label string) pair    // label: the link's text where that is all it has
	heading      func(level int) pair
	quote        pair // "" = each line begins with "> "
	quoteMost    int  // how deep quotes may nest
	lineBreak    string
	hardBreak    string
	paragraph    string // between paragraphs of plain text
	bullet       string // "" = as in the source
	anew         bool   // whether an item that is cut has its bullet again
	blocks       bool   // paragraphs, lists and items are elements, so no blank lines are needed
	bounded      bool   // bold and italic need a word's boundary around them
	rule         string
}

//nolint:gochecknoglobals // a table, never changed
var flavours = map[string]*flavour{
	Plain: {
		escape: asItIs, inCode: same, code: noCode, link: linkInWords, heading: noHeading, fence: noFence,
		quoteMost: deepest, lineBreak: "\n", hardBreak: "\n", paragraph: "\n\n", bullet: "•", rule: "———",
	},
	Markdown: {
		escape: escapeMarkdown, lead: leadMarkdown, inCode: same, bold: pair{"**", "**"}, italic: pair{"*", "*"}, code: backticks, fence: longFence, fenceBreak: true,
		link: linkMarkdown, heading: func(n int) pair { return pair{strings.Repeat("#", n) + " ", ""} },
		quoteMost: deepest, lineBreak: "\n", hardBreak: "\\\n", paragraph: "\n\n", indent: "&nbsp;", anew: true, rule: "---",
	},
	Discord: {
		escape: escapeDiscord, lead: leadMarkdown, inCode: breakFences, bold: pair{"**", "**"}, italic: pair{"*", "*"}, code: backticks, fence: shortFence, fenceBreak: true,
		link: linkDiscord, heading: headingDiscord, quoteMost: 1, lineBreak: "\n", hardBreak: "\n", paragraph: "\n\n", bullet: "-", rule: "———",
	},
	Mrkdwn: {
		escape: escapeMrkdwn, lead: leadMrkdwn, inCode: func(s string) string { return breakFences(entities.Replace(s)) },
		bold: pair{"*", "*"}, italic: pair{"_", "_"}, bounded: true,
		code:  func(s string) (pair, bool) { return pair{"`", "`"}, !strings.Contains(s, "`") },
		fence: func(string, string) pair { return pair{"```", "```"} }, fenceBreak: true,
		link: linkMrkdwn, heading: func(int) pair { return pair{"*", "*"} },
		quoteMost: 1, lineBreak: "\n", hardBreak: "\n", paragraph: "\n\n", bullet: "•", rule: "———",
	},
	Telegram: {
		escape: func(word string, _ place) string { return entities.Replace(word) }, inCode: entities.Replace,
		bold: pair{"<b>", "</b>"}, italic: pair{"<i>", "</i>"}, code: codeHTML, fence: fenceHTML,
		link: linkHTML, heading: func(int) pair { return pair{"<b>", "</b>"} },
		quote: pair{"<blockquote>", "</blockquote>"}, quoteMost: 1, lineBreak: "\n", hardBreak: "\n", paragraph: "\n\n", bullet: "•", rule: "———",
	},
	Matrix: {
		escape: func(word string, _ place) string { return entities.Replace(unmention(word)) }, inCode: entities.Replace, space: "&nbsp;", indent: "&nbsp;",
		bold: pair{"<strong>", "</strong>"}, italic: pair{"<em>", "</em>"}, code: codeHTML, fence: fenceHTML,
		link: linkHTML, heading: func(n int) pair { return pair{fmt.Sprintf("<h%d>", n), fmt.Sprintf("</h%d>", n)} },
		quote: pair{"<blockquote>", "</blockquote>"}, quoteMost: deepest, lineBreak: "<br>", hardBreak: "<br>", paragraph: "<br><br>", blocks: true, rule: "<hr>",
	},
}

func asItIs(word string, _ place) string { return word }
func same(s string) string               { return s }
func noCode(string) (pair, bool)         { return pair{}, true }
func noHeading(int) pair                 { return pair{} }
func noFence(string, string) pair        { return pair{} }
func codeHTML(string) (pair, bool)       { return pair{"<code>", "</code>"}, true }
func shortFence(info, _ string) pair     { return pair{"```" + info, "```"} }

func fenceHTML(info, _ string) pair {
	if info == "" {
		return pair{"<pre><code>", "</code></pre>"}
	}
	return pair{`<pre><code class="language-` + info + `">`, "</code></pre>"}
}

// headingDiscord: there are three levels.
func headingDiscord(level int) pair {
	if level > 3 {
		return pair{"**", "**"}
	}
	return pair{strings.Repeat("#", level) + " ", ""}
}

// backticks are as many as content has not in a row.
func backticks(content string) (pair, bool) {
	ticks := strings.Repeat("`", longest(content, '`')+1)
	pad := ""
	if content != "" && strings.ContainsAny(content[:1]+content[len(content)-1:], "` ") {
		pad = " "
	}
	return pair{ticks + pad, pad + ticks}, true
}

func longFence(info, content string) pair {
	ticks := strings.Repeat("`", max(3, longest(content, '`')+1))
	return pair{ticks + info, ticks}
}

// longest is how long the longest run of c in s is.
func longest(s string, c byte) (most int) {
	run := 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		most = max(most, run)
	}
	return most
}
