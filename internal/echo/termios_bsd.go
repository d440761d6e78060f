//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package echo

import "golang.org/x/sys/unix"

const getTermios, setTermios = unix.TIOCGETA, unix.TIOCSETA
