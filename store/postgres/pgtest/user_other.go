//go:build !linux

package pgtest

import (
	"os"
	"os/exec"
	"syscall"
)

// immediately ends the server without a word to anybody.
var immediately = os.Kill

// inOrder is the signal at which it ends everybody's connection, and then itself.
var inOrder = os.Interrupt

func own(string) error { return nil }

func attributes() *syscall.SysProcAttr { return nil }

func launch(cmd *exec.Cmd) error { return cmd.Start() }
