package channeltest

import (
	"sync/atomic"
	"time"

	"leasehold/channel"
)

// stepCases are what every type promises at each step of its protocol.
var stepCases = []stepCase{
	{"a cut loses nothing and repeats nothing", func(b *box, step string) { b.breakAt(step, b.faults.Cut) }},
	{"a half-closed connection loses nothing and repeats nothing", func(b *box, step string) { b.breakAt(step, b.faults.HalfClose) }},
	{"a mute connection is noticed within the stated bound", muteAt},
	{"a stop over a mute connection takes less than a second", stopAt},
}

// breakAt breaks the connection at a step, and wants every event all the same:
// three times over in simulated time, once where the waits are real.
func (b *box) breakAt(step string, fault func()) {
	var ids []string
	times := 3
	if !b.bubble {
		times = 1
	}
	b.steps.when(step, fault)
	b.start()
	for i := range times {
		ids = append(ids, b.platform.Push(account, 5)...)
		b.within(3*time.Minute, "every event kept once and acknowledged", func() bool { return b.delivered(ids...) })
		if i < times-1 {
			b.steps.when(step, fault)
		}
	}
	b.passed(step)
}

// passed fails when the step is never seen: then nothing was broken there. A platform
// may tell of it a moment after what it leads to, as when it has written an answer.
func (b *box) passed(step string) {
	b.Helper()
	b.within(time.Minute, "the step "+step, func() bool { return b.steps.count(step) > 0 })
}

// muteAt makes the connection mute at a step and wants it noticed, and replaced: at
// the step's first time, and again once it is connected, where the step comes again.
func muteAt(b *box, step string) {
	mute := func() *atomic.Bool {
		var muted atomic.Bool
		b.steps.when(step, func() {
			muted.Store(true)
			b.faults.BlackholeExisting()
		})
		return &muted
	}
	muted := mute()
	ids := b.platform.Push(account, 5)
	b.start()
	b.within(time.Minute, "the step "+step, muted.Load)
	b.replaced(ids)

	muted = mute()
	ids = append(ids, b.platform.Push(account, 5)...)
	for range 60 { // a minute of simulated time, three seconds of real time
		if b.pass(b.tick()); muted.Load() {
			b.replaced(ids)
			return
		}
	}
	b.steps.when("", nil)
}

// replaced wants a mute connection noticed, and every event all the same.
func (b *box) replaced(ids []string) {
	b.Helper()
	b.pass(100 * time.Millisecond) // what was on its way has arrived
	attempts, connections := b.link().Attempts, b.platform.Connections(account)
	b.within(b.deaf(), "noticed", func() bool {
		return b.link().Attempts > attempts || b.platform.Connections(account) > connections
	})
	b.within(time.Minute, "every event kept once and acknowledged", func() bool { return b.delivered(ids...) })
	b.within(time.Minute, "connected again", b.connected)
}

func (b *box) tick() time.Duration {
	if b.bubble {
		return time.Second
	}
	return 50 * time.Millisecond
}

const (
	// handshake bounds a connection that was never ready: ten seconds to dial,
	// thirty until the platform has said so.
	handshake = 40 * time.Second
	// busy is what a loaded machine may add to a bound in real time, over TCP; in
	// simulated time the bounds hold to the letter.
	busy = 8 * time.Second
	// quickDeaf bounds a connection that was ready under a quick configuration.
	quickDeaf = 3*time.Second + busy
)

// deaf is the bound for noticing that the connection is mute now.
func (b *box) deaf() time.Duration {
	switch {
	case !b.connected():
		return handshake
	case b.bubble:
		return b.h.Spec.Deaf
	default:
		return quickDeaf
	}
}

// stopAt stops the node while the line is dead.
func stopAt(b *box, step string) {
	stopped := make(chan struct{})
	b.steps.when(step, func() {
		b.faults.Pause()
		close(stopped)
	})
	b.platform.Push(account, 5)
	b.start()
	<-stopped
	limit := time.Second
	if !b.bubble {
		limit = channel.Goodbye + busy
	}
	if took := b.halt(); took >= limit {
		b.Errorf("got a stop that took %s at %s, want less than %s", took, step, limit)
	}
	b.passed(step)
}
