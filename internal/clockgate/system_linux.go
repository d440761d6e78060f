package clockgate

import (
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
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

// kept reads /sys: a machine at home in a rack has a clock with a battery, a virtual
// one is given the time by its host. Neither is so on the boards that wake up in 1970.
func kept(now time.Time) bool { return keptBy(os.DirFS("/"), now) }

// keptBy is kept under another root. A clock with a battery counts when it agrees
// with the wall's but for a time zone: one whose battery is empty begins somewhere.
func keptBy(root fs.FS, now time.Time) bool {
	clocks, _ := fs.Glob(root, "sys/class/rtc/*/since_epoch")
	for _, name := range clocks {
		b, err := fs.ReadFile(root, name)
		if err != nil {
			continue
		}
		at, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err == nil && now.Sub(time.Unix(at, 0)).Abs() < 24*time.Hour {
			return true
		}
	}
	sources, _ := fs.ReadFile(root, "sys/devices/system/clocksource/clocksource0/available_clocksource")
	return slices.ContainsFunc(strings.Fields(string(sources)), func(s string) bool {
		return s == "kvm-clock" || s == "xen" || strings.HasPrefix(s, "hyperv")
	})
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
