//go:build linux

package evidence_test

import (
	"syscall"
	"testing"

	"leasehold/internal/fault"
)

func TestReadOnlyMount(t *testing.T) {
	alone(t, func(t *testing.T) {
		t.Run("a data folder that is mounted read-only is named with the fix, and works again once it is not", func(t *testing.T) {
			dir := tmpfs(t, "64m")
			w := lived(t, dir)
			must(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
			w.refuses(fault.ExitFailed, w.data(""), "mounted read-write")
			must(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT, ""))
			w.say(5)
			p := w.start()
			w.arrived(longest)
			p.stop()
			w.judge()
		})
	})
}
