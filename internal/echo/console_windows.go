package echo

import (
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

func off(f *os.File) (func() error, error) {
	h := windows.Handle(f.Fd())
	var was uint32
	if err := windows.GetConsoleMode(h, &was); err != nil {
		return nil, fmt.Errorf("read the console's mode: %w", err)
	}
	silent := was&^windows.ENABLE_ECHO_INPUT | windows.ENABLE_LINE_INPUT | windows.ENABLE_PROCESSED_INPUT
	if err := windows.SetConsoleMode(h, silent); err != nil {
		return nil, fmt.Errorf("silence the console: %w", err)
	}
	return func() error { return windows.SetConsoleMode(h, was) }, nil
}
