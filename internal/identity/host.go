package identity

import (
	"fmt"
	"os"
)

// Host names this boot of this machine and the folder on it, as
// "boot id/folder": a session left under the same host by a process that held
// the folder's lock is dead, since we hold it now. The part before the slash
// changes with every boot.
func Host(dir string) (string, error) {
	boot, err := bootID()
	if err != nil {
		return "", fmt.Errorf("tell this boot of the machine from others: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("look at the data folder: %w", err)
	}
	folder, err := inode(dir, info)
	if err != nil {
		return "", fmt.Errorf("look at the data folder: %w", err)
	}
	return boot + "/" + folder, nil
}
