package delivery

import (
	"time"
)

// schedule is how long an event waits after its first, second, … failure; the
// last one repeats. The first three are for a hiccup, the next for a restart and
// a deploy, the rest for people.
var schedule = [...]time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour,
}

const (
	// quickTries is how often an event may fail while its lane waits for it.
	quickTries = 3
	// probeMin and probeMax bound the wait between looks at a target that is down:
	// soon enough that a restart is not noticed, rare enough not to be a burden.
	probeMin = time.Second
	probeMax = time.Minute
	// rowLength is how many different events fail alike before it is an outage.
	rowLength = 5
	// clockStart is before what a clock shows that has been set at least once. An
	// event accepted before has no known age: it was heard on a box that woke up in
	// 1970, and must not die of it.
	clockStart instant = 946684800000 // 2000-01-01
)

// retryWait is the wait after so many counted failures, the jitter inside it.
func retryWait(attempts int, random func() float64) time.Duration {
	wait := schedule[min(max(attempts, 1), len(schedule))-1]
	return time.Duration(float64(wait) * (0.8 + 0.2*random()))
}

// toldWait is a wait that the target asked for: never less, a little more so that
// those who were told together do not come back together.
func toldWait(after time.Duration, random func() float64) time.Duration {
	return time.Duration(float64(after) * (1 + 0.1*random()))
}

// probeWait is the wait before the next look at a target that was found down so
// many times in a row.
func probeWait(fails int, random func() float64) time.Duration {
	wait := min(probeMax, probeMin<<min(max(fails-1, 0), 10))
	return time.Duration(float64(wait) * (0.5 + 0.5*random()))
}

// expiry is when a delivery dies of age; 0 = never. A replay does not: a person
// asked for it, however old it is.
func (t *target) expiry(e *entry) instant {
	if e.replay || e.accepted < clockStart {
		return 0
	}
	return e.accepted.add(t.MaxAge)
}
