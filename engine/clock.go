package engine

import "time"

// Clock tells the time of this machine. Boot goes on during suspend and never
// steps; its zero is arbitrary. Wall is for people and for what is stored.
type Clock interface {
	Boot() Instant
	Wall() time.Time
}

// SystemClock is the machine's clock.
func SystemClock() Clock { return systemClock{} }

// GoClock is a clock made of time.Now alone. It stops during suspend; tests in
// a synctest bubble run on it.
func GoClock() Clock { return goClock{start: time.Now()} }

type goClock struct{ start time.Time }

func (c goClock) Boot() Instant   { return Instant(time.Since(c.start)) }
func (c goClock) Wall() time.Time { return time.Now() }
