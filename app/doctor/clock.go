package doctor

import (
	"fmt"
	"runtime/debug"
	"time"
)

// synchrony is what the system says of its clock.
type synchrony int

const (
	unknownSync synchrony = iota // the system does not say
	inSync
	outOfSync
)

// builtAt is when the source of this program was committed; zero = not known.
func builtAt() time.Time {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return time.Time{}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			at, err := time.Parse(time.RFC3339, s.Value)
			if err != nil {
				return time.Time{}
			}
			return at
		}
	}
	return time.Time{}
}

// checkClock looks at the wall clock: signatures, certificates and ages hang on it.
func checkClock(s synchrony, now, built time.Time) Finding {
	const next = "let the system set it: timedatectl set-ntp true (or start your NTP service)"
	at := now.UTC().Format(time.RFC3339)
	switch {
	case now.Before(built):
		return Finding{"clock", Fail, fmt.Sprintf("it says %s, and this program was made on %s: certificates will be refused", at, built.UTC().Format(time.DateOnly)), next}
	case s == outOfSync:
		return Finding{"clock", Warn, "it says " + at + ", and nothing keeps it right: the system calls it not synchronised", next}
	case s == unknownSync:
		return Finding{"clock", OK, "it says " + at + "; this system does not tell whether it is synchronised", ""}
	}
	return Finding{"clock", OK, "it says " + at + ", synchronised", ""}
}
