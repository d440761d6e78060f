package outbound

import "time"

const (
	// windowSize is how many messages of one lease are kept in memory, about 300 bytes
	// each; the store keeps those behind them. refillAt is when more are read.
	windowSize, refillAt = 1024, 512
	// pageSize is how many are read at once.
	pageSize = 256

	// lookLinger is how long the first of many grants waits for the others: one
	// question of the store is for all of them.
	lookLinger = 50 * time.Millisecond

	// sendTimeout ends a send that its channel type does not end by itself; each has
	// its own, shorter bound.
	sendTimeout = 2 * time.Minute
	// storeTimeout bounds one call of the store. Every one may be made again.
	storeTimeout = 10 * time.Second
	// storeWaitMin and storeWaitMax bound the wait after one that failed.
	storeWaitMin, storeWaitMax = 100 * time.Millisecond, 5 * time.Second

	// dropGrace is how long a Drop lets sends end by themselves: most take less, and
	// what is broken off may have been sent.
	dropGrace = 500 * time.Millisecond
	// lastWrites bounds what is stored after Run was told to end.
	lastWrites = 2 * time.Second
	// nap is the longest sleep of a queue. Timers stand still while the machine sleeps;
	// what is due by the wall clock is found this soon after.
	nap = 15 * time.Second

	// retryMin and retryMax bound the wait after a message surely was not sent: soon
	// enough for somebody who waits for an answer, and some twenty tries in the quarter
	// of an hour that a message has.
	retryMin, retryMax = time.Second, time.Minute
	// maxWords bounds what is kept of a platform's words, in bytes.
	maxWords = 1000
)

// storeWait is the wait after so many calls of the store that failed in a row.
func storeWait(fails int) time.Duration {
	return min(storeWaitMax, storeWaitMin<<min(max(fails-1, 0), 10))
}

// retryWait is the wait after so many attempts, the jitter inside it.
func retryWait(attempts int, random func() float64) time.Duration {
	wait := min(retryMax, retryMin<<min(max(attempts-1, 0), 10))
	return time.Duration(float64(wait) * (0.8 + 0.2*random()))
}

// toldWait is a wait that the platform asked for: never less, a little more so that
// those who were told together do not come back together.
func toldWait(after time.Duration, random func() float64) time.Duration {
	return time.Duration(float64(max(after, retryMin)) * (1 + 0.1*random()))
}
