package admin

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// peersKnown: the system tells whose a process at the other end is.
const peersKnown = true

// peerOf says why the process at the other end of c may not ask; nil: it may. The
// kernel vouches for the user id that the caller had when it connected.
func peerOf(c net.Conn) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return errors.New("the caller's user is not known on this connection")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return fmt.Errorf("look at the caller: %w", err)
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) { cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return fmt.Errorf("look at the caller: %w", err)
	}
	if cerr != nil {
		return fmt.Errorf("look at the caller: %w", cerr)
	}
	return allowed(int(cred.Uid))
}

// allowed judges a caller by its user id.
func allowed(uid int) error {
	if own := os.Geteuid(); uid != own && uid != 0 {
		return fmt.Errorf("user id %d may not speak to this program; use its own user (id %d) or root, for example with sudo", uid, own)
	}
	return nil
}
