package app

import (
	"fmt"
	"io"
	"sync"
)

// output is the program's stdout. It remembers the first write that failed, so
// that no command has to look at each of its lines: an answer that did not arrive
// whole is no success, whatever was done.
type output struct {
	io.Writer

	mu  sync.Mutex // guards err
	err error      // of the first write that failed
}

// Write writes, unless an earlier write has failed: half an answer ends where it
// was cut.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.Writer.Write(b)
	o.err = err
	return n, err //nolint:wrapcheck // failed says what was being done
}

// failed is why the output is not whole; nil: it is.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	return fmt.Errorf("write the answer: %w", o.err)
}

// written is why what was written so far is not whole, for a command that would
// otherwise go on for ever.
func (p *program) written() error {
	if o, ok := p.Stdout.(*output); ok {
		return o.failed()
	}
	return nil
}
