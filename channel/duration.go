package channel

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time span that config writes as "30s", "5m", "7d" or "1d12h":
// what time.ParseDuration reads, with days of 24 hours before it. It is never
// negative.
type Duration time.Duration

var (
	errDuration      = errors.New(`must be a duration such as "30s", "5m", "1h" or "7d"`)
	errLongDuration  = errors.New("is too long a duration; the most is 292 years")
	errMinusDuration = errors.New("must not be negative")
)

// Std is d as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(b []byte) error {
	head, rest, days := strings.Cut(string(b), "d")
	if !days {
		head, rest = "", head
	}
	var total float64 // nanoseconds; only compared with the limit
	var v time.Duration
	if days {
		n, err := strconv.ParseFloat(head, 64)
		if err != nil || strings.ContainsAny(head, "eExXiInN_") || rest != "" && strings.ContainsAny(rest[:1], "+-") {
			return errDuration
		}
		total = n * 24 * float64(time.Hour)
		if math.Abs(total) < math.MaxInt64 {
			v = time.Duration(total)
		}
	}
	if !days || rest != "" {
		r, err := time.ParseDuration(rest)
		if err != nil {
			return errDuration
		}
		total += float64(r)
		v += r
	}
	switch {
	case total < 0:
		return errMinusDuration
	case total >= math.MaxInt64:
		return errLongDuration
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes the duration as time.Duration prints it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }
