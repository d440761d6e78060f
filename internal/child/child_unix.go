//go:build unix && !linux

package child

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// leaves: after our own death the program lives until the next Clear.
const leaves = true

func adopt() {} // there is no such thing here

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func (c *Child) begun() (identity, error) {
	start, _ := startOf(c.process.Pid)
	return identity{c.process.Pid, start}, nil
}

func (c *Child) terminate() { _ = unix.Kill(-c.process.Pid, unix.SIGTERM) }
func (c *Child) kill()      { _ = unix.Kill(-c.process.Pid, unix.SIGKILL) }

// await waits for the program and kills its group. The program is reaped before
// that; its number is not used again while its group has members, and is not used
// again within the instant in which it has none.
func (k *Keeper) await(c *Child) End {
	state, _ := c.process.Wait()
	left := 0
	if unix.Kill(-c.process.Pid, unix.SIGKILL) == nil {
		left = until(func() int { return members(c.process.Pid) })
	}
	c.over()
	return End{State: state, Left: left}
}

// clan is a program with its group.
type clan struct {
	marker string
	leader identity
}

// end kills the group of a program that still lives. Of one whose leader has died
// nothing can be said for certain, and nothing is killed.
func (f clan) end() (killed, alive int) {
	if f.leader.PID <= 1 || f.leader.Start == 0 || !lives(f.leader) || unix.Kill(-f.leader.PID, unix.SIGKILL) != nil {
		return 0, 0
	}
	if alive = until(func() int { return members(f.leader.PID) }); alive > 0 {
		return 0, alive
	}
	return 1, 0
}

// members is 1 while a group has any; the dead who wait for init to reap them
// count, for a moment.
func members(group int) int {
	if unix.Kill(-group, 0) == nil {
		return 1
	}
	return 0
}

// boot is when the machine started, where the system tells.
func boot() string {
	at, ok := bootTime()
	if !ok {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// Look does nothing here: who has left the group is not found.
func (k *Keeper) Look() {}
