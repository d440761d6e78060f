package sqlite

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"leasehold/internal/fault"
)

// tryLock locks the database's own inode, which no second name, no unlinked lock
// file and no single-file mount can split. It is safe because the driver uses
// OFD locks, which closing this descriptor does not drop.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// refuseTwoNames refuses a hard link and a file that is a mount point: both
// survive a rename of the other name, and a copy of the service would lock the
// one while we lock the other.
func refuseTwoNames(path string, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		return fault.Errorf(fault.Invalid, "the database %s has %d names (hard links): remove the others, or copy it", path, st.Nlink)
	}
	mounted, err := isMountPoint(path)
	if err != nil {
		return fault.Errorf(fault.Internal, "look for a mount at %s: %w", path, err)
	}
	if mounted {
		return fault.Errorf(fault.Invalid, "the database %s is mounted as a single file, apart from its -wal: mount its folder instead", path)
	}
	return nil
}

// isMountPoint reads the mount table, since a file bound from the same file
// system has the same device number as its folder.
func isMountPoint(path string) (bool, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // a chroot without /proc: nothing to ask
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // read only
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for lines := bufio.NewScanner(f); ; {
		if !lines.Scan() {
			return false, lines.Err()
		}
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && unescape.Replace(fields[4]) == path {
			return true, nil
		}
	}
}

// networks are the file systems that do not keep the promises which a log in
// shared memory needs: memory shared by every process and locks that hold.
var networks = map[uint32]string{
	0x6969: "NFS", 0xFE534D42: "SMB", 0xFF534D42: "CIFS", 0x517B: "SMB", 0x65735546: "FUSE", 0x01021997: "9p",
	0x00C36400: "Ceph", 0x5346414F: "AFS", 0x47504653: "GPFS", 0x0BD00BD0: "Lustre", 0x7461636F: "OCFS2", 0x786F4256: "vboxsf",
}

func refuseNetwork(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fault.Errorf(fault.ReadOnly, "look at the file system of %s: %w", dir, err)
	}
	if name, bad := networks[uint32(st.Type)]; bad {
		return fault.Errorf(fault.Invalid, "%s is on %s, where a database can be damaged: use a local disk, or set store.force_network_fs", dir, name)
	}
	return nil
}
