package sqlite

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// volatiles are the file systems that do not outlive a boot, or their container.
var volatiles = map[uint32]string{unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay"}

func lookAtFileSystem(p *Place) error {
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(p.Path), &st); err != nil {
		return err
	}
	kind := uint32(st.Type)
	if name, bad := networks[kind]; bad {
		p.FileSystem, p.Network = name, true
	}
	if name, bad := volatiles[kind]; bad {
		p.FileSystem, p.Volatile = name, true
	}
	if st.Files > 0 { // btrfs has no such limit
		p.Nodes = int64(st.Ffree)
	}
	return nil
}
