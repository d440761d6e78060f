package sse

import (
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// seen is a block as a test writes it down.
type seen struct{ name, data, id string }

func parseAll(r io.Reader) (all []seen, retry time.Duration, err error) {
	p := newParser(r, 1<<20)
	for {
		b, err := p.next()
		if err != nil {
			return all, p.retry, err
		}
		s := seen{b.name, string(b.data), b.id}
		if !b.hasData {
			s.data = "-"
		}
		if !b.hasID {
			s.id = "-"
		}
		all = append(all, s)
	}
}

func TestParser(t *testing.T) {
	const none = "-"
	for _, c := range []struct {
		name, in string
		want     []seen
	}{
		{"data over several lines", "data: YHOO\ndata: +2\ndata: 10\n\n", []seen{{"", "YHOO\n+2\n10", none}}},
		{
			"the standard's second example", ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
			[]seen{{"", "first event", "1"}, {"", "second event", ""}, {"", " third event", none}},
		},
		{"the standard's third example", "data\n\ndata\ndata\n\ndata:", []seen{{"", "", none}, {"", "\n", none}}},
		{"the standard's fourth example", "data:test\n\ndata: test\n\n", []seen{{"", "test", none}, {"", "test", none}}},
		{"a byte order mark", "\xef\xbb\xbfdata: x\n\n", []seen{{"", "x", none}}},
		{"a byte order mark before the longest name", "\xef\xbb\xbfevent: n\ndata\n\n", []seen{{"n", "", none}}},
		{"a byte order mark and then none", "\xef\xbb\xbf\n\n\xef\xbb\xbfdata: x\n\n", nil},
		{"a byte order mark before a comment", "\xef\xbb\xbf: hi\ndata: x\n\n", []seen{{"", "x", none}}},
		{"carriage returns", "event: a\rdata: 1\rdata: 2\r\rdata: 3\r\r", []seen{{"a", "1\n2", none}, {"", "3", none}}},
		{"both", "event: a\r\ndata: 1\r\ndata: 2\r\n\r\ndata: 3\r\n\r\n", []seen{{"a", "1\n2", none}, {"", "3", none}}},
		{"a mixture", "data: 1\rdata: 2\r\n\ndata: 3\n\r", []seen{{"", "1\n2", none}, {"", "3", none}}},
		{"the name of an event without data is forgotten", "event: a\n\ndata: 1\n\n", []seen{{"", "1", none}}},
		{"the last name counts", "event: a\nevent: b\ndata: 1\n\n", []seen{{"b", "1", none}}},
		{"an id without data moves the position", "id: 7\n\n", []seen{{"", none, "7"}}},
		{"an empty id resets it", "id:\ndata: x\n\n", []seen{{"", "x", ""}}},
		{"an id with a NUL is none", "id: a\x00b\ndata: x\n\n", []seen{{"", "x", none}}},
		{"an id with a NUL leaves the one before it", "id: a\nid: b\x00\ndata: x\n\n", []seen{{"", "x", "a"}}},
		{"an id that no header can hold is none", "id: a\x01b\ndata: x\n\n", []seen{{"", "x", none}}},
		{"an id that is too long for a header is none", "id: " + strings.Repeat("i", maxEventID+1) + "\ndata: x\n\n", []seen{{"", "x", none}}},
		{"the longest id", "id: " + strings.Repeat("i", maxEventID) + "\ndata: x\n\n", []seen{{"", "x", strings.Repeat("i", maxEventID)}}},
		{"invalid UTF-8 in an id", "id: \xff\ndata: x\n\n", []seen{{"", "x", "\uFFFD"}}},
		{"unknown fields and comments", "foo: 1\nda: 2\ndatabase: 3\nDATA: 4\n:\n:data: 5\ndata : 6\n data: 7\ndata: 8\n\n", []seen{{"", "8", none}}},
		{"one space is taken off", "data:x\ndata: x\ndata:  x\ndata:\tx\n\n", []seen{{"", "x\nx\n x\n\tx", none}}},
		{"colons in a value", "data: a:b: c\n\n", []seen{{"", "a:b: c", none}}},
		{"a stream that ends within a block", "data: 1\n\ndata: 2\n", []seen{{"", "1", none}}},
		{"a stream that ends within a line", "data: 1\n\nid: 3\n\nid: 4", []seen{{"", "1", none}, {"", none, "3"}}},
		{"nothing", "", nil},
		{"empty lines", "\n\r\n\r\r\n\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"whole": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
				"in halves": iotest.HalfReader(strings.NewReader(c.in)), "its end with the data": iotest.DataErrReader(strings.NewReader(c.in)),
			} {
				got, _, err := parseAll(r)
				if !slices.Equal(got, c.want) || !errors.Is(err, io.EOF) {
					t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
				}
			}
		})
	}
}

func TestRetryLines(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"retry: 10000\n":               10 * time.Second,
		"retry:0\n":                    0,
		"retry: 5\nretry: 7\n\n":       7 * time.Millisecond,
		"retry: 5\nretry: 1.5\n":       5 * time.Millisecond,
		"retry: -5\n":                  0,
		"retry: +5\n":                  0,
		"retry: 5s\n":                  0,
		"retry\n":                      0,
		"retry: 5":                     0,
		"retry:  5\n":                  0,
		"retry: 99999999999999999\n":   2540400 * time.Hour,
		"retry: 9999999999999999999\n": 0,
	} {
		got, retry, _ := parseAll(strings.NewReader(in))
		if len(got) != 0 {
			t.Errorf("%q: got %q, want no block", in, got)
		}
		if want > time.Hour {
			if retry < want {
				t.Errorf("%q: got %s, want the longest there is", in, retry)
			}
		} else if retry != want {
			t.Errorf("%q: got %s, want %s", in, retry, want)
		}
	}
}

// endless repeats its text for ever.
type endless struct {
	text string
	read int
}

func (e *endless) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		n += copy(b[n:], e.text)
	}
	e.read += n
	return n, nil
}

func TestWhatHasNoEndIsBounded(t *testing.T) {
	for name, begin := range map[string]struct{ begin, text string }{
		"a data line": {"data: ", "x"}, "data lines": {"", "data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"},
		"a comment": {":", "x"}, "a name": {"", "x"}, "an id": {"id:", "1"}, "an event's name": {"event:", "n"}, "a retry": {"retry:", "1"},
		"an unknown field": {"foo:", ":"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &endless{text: begin.text}
			p := newParser(io.MultiReader(strings.NewReader(begin.begin), e), 1000)
			if b, err := p.next(); !errors.Is(err, errEndless) {
				t.Fatalf("got %+v, %v, want an end", b, err)
			}
			if e.read > 2*readLimit {
				t.Errorf("got %d bytes read, want it given up soon after %d", e.read, readLimit)
			}
		})
	}
	t.Run("comments and fields without an event go on for ever", func(t *testing.T) {
		p := newParser(io.LimitReader(&endless{text: ": hi\nfoo: bar\nid: 1\nevent: e\nretry: 1\n"}, 2*readLimit), 1000)
		if b, err := p.next(); !errors.Is(err, io.EOF) {
			t.Errorf("got %+v, %v, want the stream's own end", b, err)
		}
	})
}

func TestOnlyWhatIsKeptTakesMemory(t *testing.T) {
	for _, c := range []struct{ size, kept int }{{10, 10}, {100, 100}, {101, 101}, {5000, 101}} {
		p := newParser(strings.NewReader("data: "+strings.Repeat("x", c.size)+"\nid: 1\n\n"), 100)
		b, err := p.next()
		if err != nil || b.size != c.size || len(b.data) != c.kept || b.id != "1" {
			t.Errorf("%d: got size %d, %d bytes, id %q, %v, want %d bytes kept", c.size, b.size, len(b.data), b.id, err, c.kept)
		}
	}
	t.Run("line feeds between the lines count", func(t *testing.T) {
		p := newParser(strings.NewReader("data: 12345\ndata: 789\n\ndata: 12345\ndata: 7890\n\n"), 9)
		first, _ := p.next()
		second, _ := p.next()
		if string(first.data) != "12345\n789" || first.size != 9 || second.size != 10 {
			t.Errorf("got %q of %d and then %d, want nine bytes and ten", first.data, first.size, second.size)
		}
	})
}

// reference is the plain way to do what the parser does.
func reference(stream string) (all []seen, retry string) {
	stream = strings.TrimPrefix(stream, byteOrderMark)
	lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n"), "\n")
	fresh := seen{"", "-", "-"}
	s := fresh
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			if s.data != "-" || s.id != "-" {
				s.data = strings.TrimPrefix(s.data, "-\n")
				all = append(all, s)
			}
			s = fresh
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "data":
			s.data += "\n" + value
		case "event":
			s.name = strings.ToValidUTF8(value[:min(len(value), maxName)], "")
		case "id":
			if usable(value) {
				s.id = strings.ToValidUTF8(value, "\uFFFD")
			}
		case "retry":
			if value != "" && strings.Trim(value, "0123456789") == "" && len(value) <= maxRetry {
				retry = value
			}
		}
	}
	return all, retry
}

// chopped reads in pieces of given sizes, over and over.
type chopped struct {
	text  string
	sizes []byte
	i     int
}

func (c *chopped) Read(b []byte) (int, error) {
	if c.text == "" {
		return 0, io.EOF
	}
	n := 1
	if len(c.sizes) > 0 {
		n = int(c.sizes[c.i%len(c.sizes)])%7 + 1
		c.i++
	}
	n = copy(b[:min(n, len(b))], c.text)
	c.text = c.text[n:]
	return n, nil
}

func FuzzParser(f *testing.F) {
	f.Add("\xef\xbb\xbfdata: ä\r\nid: 1\r\n\r\n", []byte{1, 2, 3})
	f.Add("event: e\rdata\r\rretry: 10\n: c\n\n", []byte{0})
	f.Add("data: -\n\ndata: \xff\nid:\n\n", []byte{6})
	f.Fuzz(func(t *testing.T, stream string, sizes []byte) {
		got, retry, err := parseAll(&chopped{text: stream, sizes: sizes})
		want, wantRetry := reference(stream)
		if !slices.Equal(got, want) || !errors.Is(err, io.EOF) {
			t.Fatalf("%q: got %q, %v, want %q", stream, got, err, want)
		}
		n, _ := strconv.ParseUint(wantRetry, 10, 64) // "" is 0
		if uint64(retry.Milliseconds()) != min(n, math.MaxInt64/1_000_000) {
			t.Fatalf("%q: got retry %s, want %q ms", stream, retry, wantRetry)
		}
	})
}
