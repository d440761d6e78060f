//go:build unix

package child

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// role makes the test's own binary one of the programs below.
const role = "CHILD_TEST_ROLE"

func TestMain(m *testing.M) {
	if roles := os.Getenv(role); roles != "" {
		head, rest, _ := strings.Cut(roles, ",")
		play(head, rest)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// play is a program. What it starts plays the rest of the roles. Each says its
// number and its role on standard output.
func play(head, rest string) {
	fmt.Printf("%d %s\n", os.Getpid(), head)
	switch head {
	case "sleep":
		time.Sleep(time.Hour)
	case "exit": // at once
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		time.Sleep(time.Hour)
	case "fork": // and wait
		offspring(rest, nil, os.Environ())
		time.Sleep(time.Hour)
	case "leave": // fork, and end once it is up
		offspring(rest, nil, os.Environ())
	case "session": // in a session of its own, and wait
		offspring(rest, &syscall.SysProcAttr{Setsid: true}, os.Environ())
		time.Sleep(time.Hour)
	case "daemon": // in a session of its own, and end
		offspring(rest, &syscall.SysProcAttr{Setsid: true}, os.Environ())
	case "litter": // have a child in a session of its own that ends, and do not wait for it
		offspring("exit", &syscall.SysProcAttr{Setsid: true}, os.Environ())
		time.Sleep(time.Hour)
	case "bare": // in a session of its own without the environment; wait for a line, then end
		offspring(rest, &syscall.SysProcAttr{Setsid: true}, nil)
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	case "status":
		n, _ := strconv.Atoi(rest)
		os.Exit(n)
	case "keeper": // what Leasehold is: runs a program and records it in the folder
		dir, roles, _ := strings.Cut(rest, ",")
		k := NewKeeper()
		k.Keep(dir)
		_, err := k.Run(program(roles), func(c *Child) {
			go func() {
				b := bufio.NewScanner(c.Stdout)
				for b.Scan() {
					fmt.Println(b.Text())
				}
			}()
		})
		fmt.Println("0", err)
	}
}

// offspring starts this binary again; it writes to our standard output.
func offspring(roles string, sys *syscall.SysProcAttr, env []string) {
	c := exec.Command(program("").Path) //nolint:noctx // it outlives us on purpose
	c.Env = append(env, role+"="+roles)
	c.SysProcAttr = sys
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		fmt.Println("0", err)
		os.Exit(1)
	}
	lines := bufio.NewScanner(out)
	first := make(chan bool)
	go func() {
		for n := 0; lines.Scan(); n++ {
			fmt.Println(lines.Text())
			if n == strings.Count(roles, ",") {
				close(first)
			}
		}
	}()
	<-first
	switch head, _, _ := strings.Cut(roles, ","); head {
	case "daemon", "leave":
		_ = c.Wait() // it ends by itself, as it should
	}
}

// program is this binary in the roles.
func program(roles string) Program {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Program{Owner: "acme", Path: self, Argv: []string{"child"}, Env: []string{role + "=" + roles}}
}
