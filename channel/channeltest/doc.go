// Package channeltest is what a channel type is tested with: an in-memory
// network that can be broken in the ways real ones break (Net), a chaos proxy
// that does the same to real TCP (Proxy), a Link's backend that records (Bench),
// and the suite that every type passes (Run).
//
// It is for tests only. Net and Bench work inside a testing/synctest bubble:
// whoever waits in them waits durably, so a day of silence passes in no time.
package channeltest

import "time"

// Faults are the ways in which a network fails, as Net and Proxy offer them.
// Except where it says otherwise they apply to the connections that exist when
// they are called.
type Faults interface {
	// Pause stops every byte, also of connections to come, and keeps the sockets:
	// a peer behind it is mute, and writes succeed until the buffers are full.
	Pause()
	// Resume undoes Pause and BlackholeExisting: what was held arrives.
	Resume()
	// Cut resets every connection at both ends.
	Cut()
	// HalfClose ends the stream towards the dialler and drops what the other end
	// still writes; the dialler's own bytes still arrive.
	HalfClose()
	// BlackholeExisting pauses what exists and lets new connections through, as a
	// NAT does that has forgotten its table.
	BlackholeExisting()
	// Refuse refuses dials, until it is called with false.
	Refuse(on bool)
	// Blackhole leaves dials without an answer, until it is called with false.
	Blackhole(on bool)
	// Latency delays every byte, also of connections to come.
	Latency(d time.Duration)
	// Dials counts the connections asked for so far, refused ones included.
	Dials() int
	// Live counts the connections that the dialler has open.
	Live() int
}
