package child

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// leaves: after our own death something may be left that only a record finds.
const leaves = true

// adopt makes this process the parent of what its descendants abandon, in place
// of init: so it is found, and reaped.
func adopt() {
	// Without it what a child abandons is still found by its marker.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

func (c *Child) begun() (identity, error) {
	start, _ := startOf(c.process.Pid) // it is not reaped yet, so it is there
	return identity{c.process.Pid, start}, nil
}

func (c *Child) terminate() { _ = unix.Kill(-c.process.Pid, unix.SIGTERM) }
func (c *Child) kill()      { _ = unix.Kill(-c.process.Pid, unix.SIGKILL) }

// await waits for the program and ends what is left of it. Until the program is
// reaped nobody else gets its number, which is its group's and its session's.
func (k *Keeper) await(c *Child) End {
	for errors.Is(unix.Waitid(unix.P_PID, c.process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	k.mu.Lock()
	family := c.clan
	k.mu.Unlock()
	_, left := family.end()
	c.over()
	state, _ := c.process.Wait() // it has ended
	return End{State: state, Left: left}
}

func boot() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // "" is the same for all, and numbers with their start tell the rest
	return strings.TrimSpace(string(b))
}
