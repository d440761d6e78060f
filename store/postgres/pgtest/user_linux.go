package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"syscall"
)

// immediately is the signal at which the server ends without a word to anybody.
const immediately = syscall.SIGQUIT

// inOrder is the signal at which it ends everybody's connection, and then itself.
const inOrder = syscall.SIGINT

// servant is the user whom the server runs as; nil = our own.
func servant() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // our own
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
	}
	return nil, errors.New("there is neither a user postgres nor a user nobody")
}

// own gives the folder to the servant.
func own(dir string) error {
	c, err := servant()
	if err != nil || c == nil {
		return err
	}
	return os.Chown(dir, int(c.Uid), int(c.Gid))
}

func attributes() *syscall.SysProcAttr {
	c, err := servant()
	if err != nil {
		panic(fmt.Sprint("own was not called: ", err))
	}
	return &syscall.SysProcAttr{Credential: c, Setsid: true}
}

// launch starts the server so that it dies with this process, however that ends.
// The kernel watches the thread that started it: that one waits for ever.
func launch(cmd *exec.Cmd) error {
	cmd.SysProcAttr.Pdeathsig = immediately
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- cmd.Start()
		select {}
	}()
	return <-started
}
