// Package markup turns a text, plain or CommonMark, into what a platform reads, in as
// many parts as the platform's limit on one message makes of it.
//
// It promises that what somebody wrote as text stays text: no character of it becomes
// markup, a link or a mention, in any flavour, within a code block or outside. That
// plain text for a platform that reads plain text stays the same to the byte while it
// fits. That no part is longer than the limit, in the platform's unit; that a part ends
// what it has begun, a code block, a tag, bold, and the next one begins it again, a code
// block with its language; and that nothing is lost but the white space at
// the ends of a part. A cut is made between paragraphs rather than lines, lines
// rather than words, and within a word, or a line of code, only where no part could hold
// it; never within an escape, and not within what readers see as one character unless
// that is longer than sixteen code points.
//
// It knows CommonMark without extensions. Tables and the like stay the lines that they
// are, and a line break stays one: what programs write for a chat is not wrapped. HTML
// is text, and so is a Markdown of which nothing would be seen, or with thousands of
// delimiters. It does no I/O, and never fails on what it is given; a limit below Least is
// the caller's mistake.
package markup
