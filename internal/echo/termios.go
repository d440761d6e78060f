//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package echo

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func off(f *os.File) (func() error, error) {
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, fmt.Errorf("read the terminal's settings: %w", err)
	}
	silent := *was
	silent.Lflag &^= unix.ECHO
	silent.Lflag |= unix.ICANON | unix.ISIG
	if err := unix.IoctlSetTermios(fd, setTermios, &silent); err != nil {
		return nil, fmt.Errorf("silence the terminal: %w", err)
	}
	return func() error { return unix.IoctlSetTermios(fd, setTermios, was) }, nil
}
