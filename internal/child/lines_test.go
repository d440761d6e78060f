package child_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"leasehold/internal/child"
)

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 9000)
	for name, c := range map[string]struct {
		in   string
		want []string // "…" in front: only the beginning was kept
		rest string
	}{
		"two lines":                    {"a\nb\n", []string{"a", "b"}, ""},
		"one with a carriage return":   {"a\r\nb\r\n", []string{"a", "b"}, ""},
		"empty ones":                   {"\n\r\n\n", []string{"", "", ""}, ""},
		"half a line":                  {"a\nb", []string{"a"}, "b"},
		"nothing":                      {"", nil, ""},
		"one that just fits":           {long[:8000] + "\n", []string{long[:8000]}, ""},
		"one that is a byte too long":  {long[:8001] + "\nb\n", []string{"…" + long[:8000], "b"}, ""},
		"one that is far too long":     {long + long + "\nb\n", []string{"…" + long[:8000], "b"}, ""},
		"one that is as a buffer":      {long[:4096] + "\n" + long[:4095] + "\n", []string{long[:4096], long[:4095]}, ""},
		"half of one that is too long": {"a\n" + long, []string{"a"}, long[:8001]},
	} {
		for how, r := range map[string]io.Reader{"at once": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in))} {
			t.Run(name+" "+how, func(t *testing.T) {
				in := child.NewLines(r, 8000)
				var got []string
				for {
					b, size, err := in.Next(func() {})
					if err != nil {
						if !errors.Is(err, io.EOF) || string(b) != c.rest || size < len(b) {
							t.Errorf("got %d bytes of %d and %v at the end, want %d", len(b), size, err, len(c.rest))
						}
						break
					}
					if size > len(b) {
						b = append([]byte("…"), b...)
					}
					got = append(got, string(b))
				}
				if strings.Join(got, "|") != strings.Join(c.want, "|") {
					t.Errorf("got %d lines, want %d like %.40q", len(got), len(c.want), c.want)
				}
			})
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\r\nb\n\nc"), 3)
	f.Fuzz(func(t *testing.T, data []byte, most int) {
		most = max(1, min(most, 1<<16))
		in, total := child.NewLines(bytes.NewReader(data), most), 0
		for {
			b, size, err := in.Next(func() {})
			total += size
			if err != nil {
				break
			}
			if len(b) > most || len(b) > size || bytes.IndexByte(b, '\n') >= 0 {
				t.Fatalf("got %d of %d bytes, want at most %d without an end", len(b), size, most)
			}
		}
		if total > len(data) {
			t.Fatalf("got %d bytes of %d", total, len(data))
		}
	})
}
