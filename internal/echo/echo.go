// Package echo keeps a terminal from showing what is typed on it, as a secret is. It
// knows the terminals of the systems that the program is released for; of others it
// says that it cannot.
package echo

import "os"

// Off keeps the terminal from showing what is typed, until restore is called. What
// was typed ahead is kept, and was shown. An error means that it still shows it, or
// that f is no terminal.
func Off(f *os.File) (restore func() error, err error) { return off(f) }
