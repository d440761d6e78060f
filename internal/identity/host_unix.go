//go:build linux || darwin || freebsd

package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func inode(_ string, info fs.FileInfo) (string, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errors.New("the file system has no inodes")
	}
	return fmt.Sprintf("%x:%x", st.Dev, st.Ino), nil
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
