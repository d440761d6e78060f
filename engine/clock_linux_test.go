package engine

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sleptEnv tells the test's own process, started anew, that it runs where the boot
// clock is ahead by what a long suspend leaves.
const sleptEnv = "LEASEHOLD_TEST_SLEPT"

const slept = 100_000 * time.Second

// A machine cannot be suspended by a test, but a process can be started on one that
// seems to have been: in a time namespace, where the kernel has them and we may.
func TestSystemClock(t *testing.T) {
	t.Run("it is the clock that a suspend does not stop", func(t *testing.T) {
		before := readClock(t, unix.CLOCK_BOOTTIME)
		now := SystemClock().Boot()
		if after := readClock(t, unix.CLOCK_BOOTTIME); now < before || now > after {
			t.Errorf("got %v, want it between %v and %v", now, before, after)
		}
		if os.Getenv(sleptEnv) != "" {
			if ahead := now.Sub(readClock(t, unix.CLOCK_MONOTONIC)); ahead < slept/2 {
				t.Errorf("got a boot clock that is %v ahead of the monotonic one, want some %v", ahead, slept)
			}
			return
		}
		unshare := []string{"--time", "--boottime", "100000"}
		if out, err := exec.CommandContext(t.Context(), "unshare", append(unshare, "true")...).CombinedOutput(); err != nil {
			t.Logf("there is no time namespace here: %v: %s", err, out)
			return
		}
		cmd := exec.CommandContext(t.Context(), "unshare", append(unshare, os.Args[0], "-test.run", "^TestSystemClock$")...)
		cmd.Env = append(os.Environ(), sleptEnv+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("after a suspend: %v\n%s", err, out)
		}
	})
}

func readClock(t *testing.T, id int32) Instant {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		t.Fatal(err)
	}
	return Instant(ts.Nano())
}
