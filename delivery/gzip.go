package delivery

import (
	"bytes"
	"compress/gzip"
	"sync"
)

// gzipMin is the least size of a body that is compressed: a smaller one fits into a
// packet as it is.
const gzipMin = 1 << 10

// zippers are kept because each has 800 KB of tables.
//
//nolint:gochecknoglobals // a pool is for all
var zippers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is one
	return w
}}

// zip compresses a body. The same body comes out the same each time.
func zip(body []byte) []byte {
	w, _ := zippers.Get().(*gzip.Writer)
	defer zippers.Put(w)
	var b bytes.Buffer
	b.Grow(len(body) / 4)
	w.Reset(&b)
	_, _ = w.Write(body) // into memory
	_ = w.Close()
	return b.Bytes()
}
