package doctor

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// clockSynchronised asks the kernel, which a time service tells that it steers.
func clockSynchronised() synchrony {
	var t unix.Timex // no modes: it only reads
	state, err := unix.Adjtimex(&t)
	switch {
	case err != nil:
		return unknownSync // a sandbox
	case state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0:
		return outOfSync
	}
	return inSync
}

// openFilesOf is how many files a process may have open; 0 = it cannot be told.
func openFilesOf(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		rest, ok := strings.CutPrefix(line, "Max open files")
		if fields := strings.Fields(rest); ok && len(fields) > 0 {
			n, _ := strconv.ParseInt(fields[0], 10, 64) // unlimited is no number, and no limit
			return n
		}
	}
	return 0
}
