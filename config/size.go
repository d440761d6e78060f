package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes that is written "512kB", "16MB" (powers of 1000) or
// "64MiB" (powers of 1024). Validation refuses a negative one.
type Size int64

var (
	errSize      = errors.New(`must be a size such as "512kB", "16MB" or "64MiB"`)
	errLargeSize = errors.New("is too large a size; the most is 8 EiB")
)

// units in the order in which String tries them: the largest that divides.
var units = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40},
	{"TB", 1e12},
	{"GiB", 1 << 30},
	{"GB", 1e9},
	{"MiB", 1 << 20},
	{"MB", 1e6},
	{"KiB", 1 << 10},
	{"kB", 1e3},
	{"B", 1},
}

// UnmarshalText reads a size. Case does not matter, but for the i of "MiB".
func (s *Size) UnmarshalText(b []byte) error {
	text := strings.TrimSpace(string(b))
	cut := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '-' && r != '+' })
	if cut < 0 {
		return errSize
	}
	n, err := strconv.ParseFloat(text[:cut], 64)
	if err != nil {
		return errSize
	}
	unit := strings.TrimSpace(text[cut:])
	for _, u := range units {
		if !strings.EqualFold(u.name, unit) {
			continue
		}
		if n *= float64(u.bytes); math.Abs(n) >= math.MaxInt64 {
			return errLargeSize
		}
		*s = Size(n)
		return nil
	}
	return errSize
}

// MarshalText writes the size as String does.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String writes the size in the largest unit that divides it.
func (s Size) String() string {
	for _, u := range units {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return "0B"
}
