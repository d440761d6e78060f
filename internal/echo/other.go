//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package echo

import (
	"errors"
	"os"
)

func off(*os.File) (func() error, error) {
	return nil, errors.New("no terminal of this system can be kept from showing what is typed")
}
