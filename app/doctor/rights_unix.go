//go:build unix

package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkRights looks at who may do what in the data folder: it is its owner's alone,
// and what is in it has the same owner.
func checkRights(dir string, info fs.FileInfo) (all []Finding) {
	switch mode := info.Mode().Perm(); {
	case mode&0o022 != 0:
		all = append(all, Finding{"data folder", Fail, fmt.Sprintf("others may write to it (mode %04o): %s", mode, dir), "chmod 700 " + dir})
	case mode&0o055 != 0:
		all = append(all, Finding{"data folder", Warn, fmt.Sprintf("others may read what the bots hear (mode %04o): %s", mode, dir), "chmod 700 " + dir})
	}
	owner, ok := uidOf(info)
	if !ok {
		return all
	}
	if unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK) != nil {
		all = append(all, Finding{
			"data folder", Fail, fmt.Sprintf("it is %s's, and this is %s, who may not write to it: %s", userName(owner), userName(os.Geteuid()), dir),
			"use the user that leasehold runs as: sudo -u " + userName(owner) + " leasehold doctor",
		})
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return all
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // it went meanwhile
		}
		if of, ok := uidOf(info); ok && of != owner {
			all = append(all, Finding{
				"data folder", Fail, fmt.Sprintf("%s is %s's, and the folder is %s's", filepath.Join(dir, e.Name()), userName(of), userName(owner)),
				fmt.Sprintf("chown -R %s %s", userName(owner), dir),
			})
			break // one is enough: the command mends all
		}
	}
	return all
}

func uidOf(info fs.FileInfo) (int, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// userName is a user's name, or the number where none is known.
func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

// openFiles is how many files this process may have open, and so one that is
// started from here. The runtime has raised it to the hard limit.
func openFiles() int64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return int64(min(uint64(l.Cur), 1<<62)) //nolint:unconvert // its type differs by system
}
