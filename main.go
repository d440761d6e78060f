// Command leasehold holds exactly one live connection per bot installation, and hands
// every message that it hears to your program.
package main

import (
	"context"
	"os"

	"leasehold/app"
)

func main() {
	os.Exit(app.Main(context.Background(), app.Options{
		Types: app.Builtin(),
		Args:  os.Args[1:], Env: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}))
}
