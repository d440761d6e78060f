//go:build unix

package exec_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"leasehold/channel/channeltest"
	"leasehold/channel/exec"
)

// node is us in a process of our own: it runs the program of its last argument with
// its records in the folder before it.
func node(*puppet) int {
	dir, name := os.Args[1], os.Args[2]
	self, _ := os.Executable()
	ctx := context.Background()
	spec := exec.Spec(os.Environ())
	if err := spec.Prepare(ctx, dir, slog.New(slog.DiscardHandler)); err != nil {
		fmt.Println(err)
		return 1
	}
	c, err := spec.Decode([]byte(`{"command":["`+self+`"],"env":{"`+role+`":"`+name+`"}}`), nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ch, err := c.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	b := channeltest.NewBench(nil, nil)
	b.Start(ctx, ch)
	for len(b.Readies()) == 0 || !offspringLine.MatchString(b.Logged()) {
	}
	fmt.Println(offspringLine.FindStringSubmatch(b.Logged())[1])
	fmt.Println(b.Wait())
	return 0
}

func TestAfterOurOwnDeathNothingIsLeft(t *testing.T) {
	if dir := "/proc"; !isDir(dir) {
		return // the promise is Linux's; see leasehold/internal/child
	}
	s := newStage(t)
	dir := filepath.Join(s.dir, "run")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	us := osexec.CommandContext(t.Context(), self, dir, "leaves its session")
	us.Env = append(os.Environ(), role+"=node")
	out, err := us.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := us.Start(); err != nil {
		t.Fatal(err)
	}
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		t.Fatalf("got %q, want a process", first)
	}
	if err := us.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = us.Wait() // it was killed
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("got %v for what has left the session, want it alive until somebody looks", err)
	}

	var log buffer
	if err := exec.Prepare(t.Context(), dir, log.logger()); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(b), ") Z ") {
		t.Errorf("got process %d alive after a new start, want it killed", pid)
	}
	if !strings.Contains(log.String(), `"installation":"bench","killed":`) { // one, or two while the program itself dies
		t.Errorf("got %s, want it told", log.String())
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("got %v, %v, want no record left", files, err)
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
