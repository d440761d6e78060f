package mqtt

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// bytesConn is a connection on which these bytes come.
type bytesConn struct {
	net.Conn
	r io.Reader
}

func (c bytesConn) Read(b []byte) (int, error) { return c.r.Read(b) }
func (bytesConn) Close() error                 { return nil }

// Whatever a broker sends is a packet or the end of the connection, and never a
// panic.
func FuzzPackets(f *testing.F) {
	for _, seed := range []string{
		"\x20\x02\x00\x00", "\x20\x03\x00\x00\x00", "\x20\x08\x00\x00\x05\x15\x00\x02hi", "\x20\x0b\x01\x00\x08\x13\x00\x1e\x21\x00\x64\x24\x01",
		"\x30\x05\x00\x01xhi", "\x32\x08\x00\x01x\x00\x01\x00hi", "\x3a\x0f\x00\x01x\x00\x01\x07\x26\x00\x01k\x00\x01vhi", "\x33\x07\x00\x01x\x00\x01hi",
		"\x90\x03\x00\x01\x01", "\x90\x04\x00\x01\x00\x87", "\xb0\x02\x00\x01", "\xb0\x04\x00\x01\x00\x11", "\x40\x02\x00\x01", "\x40\x04\x00\x01\x97\x00",
		"\x50\x02\x00\x01", "\x62\x02\x00\x01", "\x70\x02\x00\x01", "\xd0\x00", "\xe0\x00", "\xe0\x01\x8e", "\xe0\x06\x9c\x04\x1c\x00\x01x", "\x30\xff\xff\xff\x7f",
		"\x30\x0a\x00\x01x\xff\xff\xff\xff\x0fhi", // a negative length, to 32 bits
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, c := range []codec{v5{}, v311{}} {
			w := newWire(bytesConn{r: bytes.NewReader(b)}, time.Second)
			for {
				f, err := w.next()
				if err != nil {
					break
				}
				if f.size > len(f.body) {
					_, _, _, _ = head(f)
					w.free(f)
					continue
				}
				p, err := c.decode(f)
				if f.kind == publish {
					w.free(f)
				}
				var broke *protocolError
				switch {
				case err != nil && !errors.As(err, &broke) && !errors.Is(err, io.EOF):
					t.Fatalf("got %v, want a violation of the protocol", err)
				case err == nil && p.kind == publish:
					e := p.event("id")
					if _, err := json.Marshal(e); err != nil {
						t.Fatalf("got %+v, which is no event: %v", e, err)
					}
				}
			}
		}
	})
}
