package identity

import (
	"os"
	"strings"
)

// bootID is the kernel's own, new at every boot.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}
