//go:build unix

package durable

import (
	"errors"
	"os"
)

// SyncDir makes what was renamed, made or removed in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
