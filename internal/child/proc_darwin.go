package child

import (
	"time"

	"golang.org/x/sys/unix"
)

// startOf is when a process began, in microseconds since 1970.
func startOf(pid int) (uint64, bool) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || info.Proc.P_pid != int32(pid) {
		return 0, false
	}
	at := info.Proc.P_starttime
	return uint64(at.Sec)*1e6 + uint64(at.Usec), true
}

func bootTime() (time.Time, bool) {
	at, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return time.Time{}, false
	}
	return time.Unix(at.Sec, 0), true
}
