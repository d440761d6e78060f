package jsonframe

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// MaxID is how many bytes of an id are kept as they are; a longer one is kept as
// its hash.
const MaxID = 255

// Text is a JSON value as text: a string without its quotes, anything else as it
// stands.
func Text(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return s
		}
	}
	return string(raw)
}

// Quote writes s as a JSON string, with <, > and & as they are.
func Quote(s string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// ShortID is an id of at most MaxID bytes, equal only for equal ids.
func ShortID(id string) string {
	if len(id) <= MaxID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ParseTime reads RFC 3339, or a number since 1970 whose size tells its unit:
// seconds reach 1e11 in the year 5138, milliseconds in 1973. Zero when it is
// neither, or no year that JSON has.
func ParseTime(s string) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
			return time.Time{}
		}
		return t
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) || n <= 0 || n >= math.MaxInt64 {
		return time.Time{}
	}
	switch {
	case n < 1e11: // seconds, which may have a fraction
		whole, fraction := math.Modf(n)
		return time.Unix(int64(whole), int64(fraction*1e9)).UTC()
	case n < 1e14:
		return time.UnixMilli(int64(n)).UTC()
	case n < 1e17:
		return time.UnixMicro(int64(n)).UTC()
	default:
		return time.Unix(0, int64(n)).UTC()
	}
}
