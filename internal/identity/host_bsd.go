//go:build darwin || freebsd

package identity

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// bootID is the time of the boot, to the second: it moves only with a boot, or
// with somebody who sets the clock by hand.
func bootID() (string, error) {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(int64(tv.Sec), 10), nil
}
