package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time span that is written "30s", "5m", "1h", "7d" or "1d12h":
// what time.ParseDuration reads, with days of 24 hours before it. Validation
// refuses a negative one.
type Duration time.Duration

var (
	errDuration     = errors.New(`must be a duration such as "30s", "5m", "1h" or "7d"`)
	errLongDuration = errors.New("is too long a duration; the most is 292 years")
)

// Std is d as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(b []byte) error {
	text, minus := strings.CutPrefix(string(b), "-")
	head, s, found := strings.Cut(text, "d")
	var days float64
	if !found {
		s = head
	} else if n, err := strconv.ParseFloat(head, 64); err != nil || strings.Trim(head, "0123456789.") != "" {
		return errDuration
	} else {
		days = n * 24 * float64(time.Hour)
	}
	var rest time.Duration
	if s != "" || !found {
		var err error
		if rest, err = time.ParseDuration(s); err != nil || strings.ContainsAny(s[:1], "+-") {
			return errDuration
		}
	}
	if days+float64(rest) >= math.MaxInt64 {
		return errLongDuration
	}
	*d = Duration(days) + Duration(rest)
	if minus {
		*d = -*d
	}
	return nil
}

// MarshalText writes the duration as String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String writes days first and leaves out what is zero: 7d, 1d12h, 1m30s.
func (d Duration) String() string {
	const day = Duration(24 * time.Hour)
	if d < 0 && -d > 0 { // the least of all has no opposite
		return "-" + (-d).String()
	}
	var days string
	if d >= day {
		days = strconv.FormatInt(int64(d/day), 10) + "d"
		if d %= day; d == 0 {
			return days
		}
	}
	s := d.Std().String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return days + s
}
