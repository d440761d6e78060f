//go:build linux || darwin || freebsd

package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

func inode(_ string, info fs.FileInfo) (string, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errors.New("the file system has no inodes")
	}
	return fmt.Sprintf("%x:%x", st.Dev, st.Ino), nil
}
