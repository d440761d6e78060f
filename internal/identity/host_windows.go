package identity

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/windows"
)

// bootID is the time of the boot to five minutes: the clock of the uptime and
// the wall's drift apart, and a false new boot only forgives failures.
func bootID() (string, error) {
	boot := time.Now().Add(-windows.DurationSinceBoot()).Round(5 * time.Minute)
	return strconv.FormatInt(boot.Unix(), 10), nil
}

func inode(dir string, _ fs.FileInfo) (string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = d.Close() }() // read only
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(d.Fd()), &info); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x:%x%08x", info.VolumeSerialNumber, info.FileIndexHigh, info.FileIndexLow), nil
}
