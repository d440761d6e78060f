package child

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Lines reads what a program writes line by line, in bounded memory.
type Lines struct {
	r   *bufio.Reader
	max int
}

// NewLines reads lines of which the first most bytes are kept.
func NewLines(r io.Reader, most int) *Lines { return &Lines{bufio.NewReader(r), most} }

// Next returns a line without its end, and its size; when that is more, only the
// beginning was kept. some is called after each piece that was read. At the end a
// line that was not ended comes with io.EOF. The bytes are the caller's.
func (l *Lines) Next(some func()) (b []byte, size int, err error) {
	for {
		piece, err := l.r.ReadSlice('\n')
		if len(piece) > 0 {
			some()
		}
		size += len(piece)
		if room := l.max + 1 - len(b); room > 0 { // its end does not count
			b = append(b, piece[:min(room, len(piece))]...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return b, size, err
		case size-1 > l.max:
			return b[:l.max], size - 1, nil
		}
		b = bytes.TrimSuffix(b[:size-1], []byte("\r"))
		return b, len(b), nil
	}
}
