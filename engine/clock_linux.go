package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

type systemClock struct{}

// Boot reads CLOCK_BOOTTIME: Go's own monotonic clock stops during suspend.
func (systemClock) Boot() Instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		// Linux has had it since 2.6.39; without it no lease can be kept.
		panic("read the boot clock: " + err.Error())
	}
	return Instant(ts.Nano())
}

func (systemClock) Wall() time.Time { return time.Now() }
