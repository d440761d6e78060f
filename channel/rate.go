package channel

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rate is how often something may be done: never more than N times within any span
// of Per, of which Burst at once when nothing was done for a while. The zero Rate is
// no limit. Config writes it as "30/s", "20/m", "5/10s" or "20/m burst 5".
type Rate struct {
	N     int
	Per   time.Duration
	Burst int // 0 = 1: evenly spread
}

// Limits are what a platform lets one installation send. Each message counts, whatever
// its op and whether the platform takes it, and so does each Call.
type Limits struct {
	All  Rate `json:"all,omitzero"`  // all that the installation sends
	Chat Rate `json:"chat,omitzero"` // into one conversation; calls count in none
}

// Limited is a Sender whose limits are not those of its type: they depend on its
// config, or the platform tells them. It is asked each time a connection is ready.
type Limited interface {
	Limits() Limits
}

const (
	// maxTimes bounds N, and maxPer what it is counted in: platforms count by the day
	// at most.
	maxTimes = 1_000_000
	maxPer   = 24 * time.Hour
)

var errRate = errors.New(`must be a rate such as "30/s", "20/m", "5/10s" or "20/m burst 5"`)

// UnmarshalText reads a rate; an empty text is no limit.
func (r *Rate) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*r = Rate{}
		return nil
	}
	times, burst, bursts := strings.Cut(string(b), " burst ")
	n, per, ok := strings.Cut(times, "/")
	if per != "" && (per[0] < '0' || per[0] > '9') {
		per = "1" + per
	}
	var v Rate
	var d Duration
	var err error
	if v.N, err = strconv.Atoi(n); err != nil || !ok || d.UnmarshalText([]byte(per)) != nil {
		return errRate
	}
	if v.Per = d.Std(); bursts {
		if v.Burst, err = strconv.Atoi(burst); err != nil || v.Burst < 1 {
			return errRate
		}
	}
	switch {
	case v.N < 1 || v.N > maxTimes:
		return fmt.Errorf("must allow from 1 to %d times (got %d)", maxTimes, v.N)
	case v.Per < time.Millisecond || v.Per > maxPer:
		return fmt.Errorf("must be counted in 1ms to 24h (got %s)", v.Per)
	case v.Burst > v.N:
		return fmt.Errorf("its burst must be at most %d (got %d)", v.N, v.Burst)
	}
	*r = v
	return nil
}

// MarshalText writes the rate as UnmarshalText reads it.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// String writes the rate as config does; "" = no limit.
func (r Rate) String() string {
	if r.N == 0 {
		return ""
	}
	per := r.Per.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(per, zero) {
			per = per[:len(per)-2]
		}
	}
	if len(per) == 2 && per[0] == '1' {
		per = per[1:]
	}
	s := strconv.Itoa(r.N) + "/" + per
	if r.Burst > 1 {
		s += " burst " + strconv.Itoa(r.Burst)
	}
	return s
}

// Spread are the parameters of a token bucket that keeps r: so many tokens a second,
// and so many at most. A full bucket of b that gains g within Per lets b-1+g through
// in any span of Per; g is what makes that N.
func (r Rate) Spread() (perSecond float64, burst int) {
	burst = max(1, r.Burst)
	return float64(r.N-burst+1) / r.Per.Seconds(), burst
}
