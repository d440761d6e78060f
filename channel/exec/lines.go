package exec

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine bounds a line of the program, in bytes: as large as the largest event
// that is kept, so that a longer one could not be stored either.
const maxLine = 1 << 20

// lines reads a stream line by line in bounded memory.
type lines struct {
	r   *bufio.Reader
	max int
}

func newLines(r io.Reader, most int) *lines { return &lines{bufio.NewReader(r), most} }

// next returns a line without its end, and its size; when that is more, only the
// beginning was kept. some is called after each piece that was read. At the end a
// line that was not ended comes with io.EOF.
func (l *lines) next(some func()) (b []byte, size int, err error) {
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
