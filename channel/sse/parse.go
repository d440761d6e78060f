package sse

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	// chunkSize is what is read at once: small, since a node may have thousands of
	// quiet streams.
	chunkSize = 2 << 10
	// maxEventID is how many bytes of an id are of use: it is sent back as a header,
	// and servers take 8 kB of them in all.
	maxEventID = 4 << 10
	// maxName is how many bytes of an event's name are kept.
	maxName = 256
	// maxRetry is how many digits of a retry line are read, which is milliseconds.
	maxRetry = 18

	byteOrderMark = "\xef\xbb\xbf"
	// longestName is event or retry, behind a byte order mark.
	longestName = len(byteOrderMark) + len("retry")
)

// errEndless ends a stream whose line or event has no end.
var errEndless = errors.New("no end within the limit")

// block is what stands between two empty lines of the stream.
type block struct {
	name    string // of the event line; "" = none
	data    []byte // of the data lines, joined by line feeds, as much of it as is kept
	size    int    // of all the data
	hasData bool
	id      string // of the id line
	hasID   bool   // there was one that counts; an empty id resets the position
}

// parser reads a stream by the rules of the HTML standard, section 9.2.6. It holds
// one chunk and the block under way, whatever the server sends.
type parser struct {
	r     io.Reader
	keep  int           // bytes of an event's data that are kept
	limit int           // bytes of a line, and of an event's data
	retry time.Duration // as the server said last; 0 = it did not

	chunk []byte
	rest  []byte // of the chunk: not parsed yet
	begun bool   // the first line has been read, where a byte order mark may stand
	cr    bool   // a carriage return was the last: a line feed behind it is no line's end
	line  int    // bytes of the current line
}

func newParser(r io.Reader, keep int) *parser {
	return &parser{r: r, keep: keep, limit: readLimit, chunk: make([]byte, chunkSize)}
}

// next returns the next block that has data or an id. What stands behind the last
// empty line when the stream ends is dropped, as the standard wants it.
func (p *parser) next() (block, error) {
	var b block
	for {
		switch ended, err := p.field(&b); {
		case err != nil:
			return block{}, err
		case ended && (b.hasData || b.hasID):
			b.data = bytes.TrimSuffix(b.data, []byte("\n"))
			b.size = max(0, b.size-1)
			return b, nil
		case ended:
			b = block{}
		}
	}
}

// field reads a line into b; true means that it was empty, and so the block's end.
func (p *parser) field(b *block) (ended bool, err error) {
	p.line = 0
	name, stop, err := p.name()
	switch {
	case err != nil:
		return false, err
	case name == "" && stop == '\n':
		return true, nil
	case name == "data":
		b.hasData = true
		err = p.value(stop, func(run []byte) { p.add(b, run) })
		p.add(b, []byte("\n"))
		if err == nil && b.size > p.limit {
			err = errEndless
		}
	case name == "event":
		err = p.text(stop, maxName, func(text string) { b.name = strings.ToValidUTF8(text, "") })
	case name == "id":
		err = p.text(stop, maxEventID+1, func(text string) {
			if usable(text) {
				b.id, b.hasID = strings.ToValidUTF8(text, "\uFFFD"), true
			}
		})
	case name == "retry":
		err = p.text(stop, maxRetry+1, p.setRetry)
	default: // a comment, or a field that the standard does not know
		err = p.value(stop, func([]byte) {})
	}
	return false, err
}

// add appends to a block's data, as far as it is kept.
func (p *parser) add(b *block, run []byte) {
	b.size += len(run)
	room := p.keep + 1 - len(b.data) // one for the line feed that is taken off
	b.data = append(b.data, run[:min(len(run), max(0, room))]...)
}

// usable reports whether an id may be the position. The standard leaves out those
// with a NUL; no header can hold the other control characters.
func usable(id string) bool {
	return len(id) <= maxEventID && !strings.ContainsFunc(id, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func (p *parser) setRetry(text string) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && len(text) <= maxRetry {
		p.retry = time.Duration(min(n, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
	}
}

// name reads a field's name, up to the colon or the line's end, which is the stop.
// A name that is longer than any that counts is "?".
func (p *parser) name() (name string, stop byte, err error) {
	var kept [longestName]byte
	n := 0
	for stop == 0 {
		var run []byte
		if run, stop, err = p.take(":\r\n"); err != nil {
			return "", 0, err
		}
		copy(kept[min(n, longestName):], run)
		n += len(run)
	}
	if n > longestName {
		p.begun = true
		return "?", stop, nil
	}
	name = string(kept[:n])
	if !p.begun {
		p.begun = true
		name = strings.TrimPrefix(name, byteOrderMark)
	}
	return name, stop, nil
}

// value reads what follows a name, without the space that may stand in front of it.
// Its parts are good until add returns.
func (p *parser) value(stop byte, add func(run []byte)) error {
	for first := true; stop != '\n'; {
		var run []byte
		var err error
		if run, stop, err = p.take("\r\n"); err != nil {
			return err
		}
		if first && len(run) > 0 {
			first = false
			run = bytes.TrimPrefix(run, []byte(" "))
		}
		add(run)
	}
	return nil
}

// text hands over a value, of which the first bytes are kept, once its line has
// ended.
func (p *parser) text(stop byte, keep int, got func(text string)) error {
	var b []byte
	err := p.value(stop, func(run []byte) { b = append(b, run[:min(len(run), keep-len(b))]...) })
	if err == nil {
		got(string(b))
	}
	return err
}

// take returns the next bytes of the line, up to a stop or as far as they have come;
// then stop is 0. A line's end is '\n', however it is written.
func (p *parser) take(stops string) (run []byte, stop byte, err error) {
	if err := p.fill(); err != nil {
		return nil, 0, err
	}
	if p.cr {
		p.cr = false
		if p.rest[0] == '\n' {
			p.rest = p.rest[1:]
			return nil, 0, nil
		}
	}
	i := bytes.IndexAny(p.rest, stops)
	if i < 0 {
		run, p.rest = p.rest, nil
	} else {
		run, stop, p.rest = p.rest[:i], p.rest[i], p.rest[i+1:]
	}
	if stop == '\r' {
		p.cr, stop = true, '\n'
	}
	if p.line += len(run); p.line > p.limit {
		return nil, 0, errEndless
	}
	return run, stop, nil
}

// fill reads a chunk when nothing is left of the last one.
func (p *parser) fill() error {
	for tries := 0; len(p.rest) == 0; tries++ {
		n, err := p.r.Read(p.chunk)
		p.rest = p.chunk[:n]
		switch {
		case n > 0: // an error behind it comes again
		case err != nil:
			return err //nolint:wrapcheck // io.EOF is compared
		case tries >= 100:
			return io.ErrNoProgress
		}
	}
	return nil
}
