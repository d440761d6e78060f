package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
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

// worked is the CPU time that a process has used so far.
func worked(pid int) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, fmt.Errorf("read the counters of a process: %w", err)
	}
	_, after, _ := strings.Cut(string(text), ") ") // a name may hold anything
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0, fmt.Errorf("read the counters of a process: got %q", text)
	}
	var ticks int64
	for _, f := range fields[11:13] { // in user mode, and in the kernel
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the counters of a process: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100, nil // USER_HZ
}

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
