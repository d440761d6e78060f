package sqlite

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// errNoSpace is what a write to a full disk answers.
const errNoSpace = windows.ERROR_DISK_FULL

// diskFree returns the bytes that this user may still write on the volume of
// path's folder.
func diskFree(path string) (int64, error) {
	dir, err := windows.UTF16PtrFromString(filepath.Dir(path))
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(dir, &free, nil, nil)
	return int64(free), err
}

// diskSize returns the bytes of that volume in all.
func diskSize(path string) (int64, error) {
	dir, err := windows.UTF16PtrFromString(filepath.Dir(path))
	if err != nil {
		return 0, err
	}
	var size uint64
	err = windows.GetDiskFreeSpaceEx(dir, nil, &size, nil)
	return int64(size), err
}
