//go:build linux || darwin || freebsd

package sqlite

import (
	"os"
	"syscall"
)

// giveAway gives a file that root made to the owner of the folder, so that the
// service, which is another user, can open it.
func giveAway(path, dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(path, int(st.Uid), int(st.Gid))
}
