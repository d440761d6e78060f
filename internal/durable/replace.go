package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace gives the file at path a new content, so that a crash, a full disk and a
// loss of power leave the old content or the new one, whole. A symbolic link is
// followed. Mode and owner stay as they are; mode is that of a file that was not
// there. An owner that cannot be kept is an error, since whoever reads the file
// could not read it any more. Whoever writes what he has read takes Lock before he
// reads.
func Replace(path string, content []byte, mode fs.FileMode) (err error) {
	path = followed(path)
	old, err := os.Stat(path)
	switch {
	case err == nil:
		mode = old.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix(path)+"*")
	if err != nil {
		return err
	}
	tmp := f.Name()
	defer func() {
		if err != nil {
			err = errors.Join(err, remove(tmp))
		}
	}()
	if _, err = f.Write(content); err == nil {
		err = f.Chmod(mode)
	}
	if err == nil && old != nil {
		err = keepOwner(f, old)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s anew: %w", path, err)
	}
	if err = os.Rename(tmp, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// tempPrefix begins the name of a new content that is being written; a number ends it.
func tempPrefix(path string) string { return "." + filepath.Base(path) + "." }

// followed is where a path leads to.
func followed(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// remove takes away what may be gone already: renamed, most often.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
