//go:build unix

package durable

import (
	"os"
	"path/filepath"
)

// openLock opens the folder of path: locked itself, it needs no file beside the one
// that is replaced, which would be another's when another user comes.
func openLock(path string) (*os.File, error) { return os.Open(filepath.Dir(path)) }
