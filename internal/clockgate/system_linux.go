package clockgate

import (
	"time"

	"golang.org/x/sys/unix"
)

// up reads CLOCK_BOOTTIME, which goes on while the machine sleeps: a laptop that
// wakes up has not leapt.
func up() (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}

// unsynced asks the kernel, whom every time service tells: it needs no privilege.
// Where the question is refused, by a sandbox, the clock is believed.
func unsynced() bool {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return false
	}
	return t.Status&unix.STA_UNSYNC != 0
}
