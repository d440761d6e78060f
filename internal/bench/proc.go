package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// rss is the memory that a process has in RAM, in bytes.
func rss(pid int) (int64, error) {
	kb, err := counter(pid, "status", "VmRSS")
	return kb * 1024, err
}

// written is what a process has caused to be written to disks so far, in bytes,
// pages of memory-mapped files included. What is written to a memory disk or a
// pipe is not in it.
func written(pid int) (int64, error) { return counter(pid, "io", "write_bytes") }

// counter reads a number of /proc/PID/file.
func counter(pid int, file, name string) (int64, error) {
	path := filepath.Join("/proc", strconv.Itoa(pid), file)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read the counters of a process: %w", err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		if fields := strings.Fields(value); key == name && len(fields) > 0 {
			return strconv.ParseInt(fields[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("read the counters of a process: %s has no %s", path, name)
}
