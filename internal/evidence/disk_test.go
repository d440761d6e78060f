//go:build linux

package evidence_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leasehold/channel/websocket/websocketfake"
)

const (
	// disk is four reserves of 16 MiB, which the store wants free before it makes
	// one, and something to fill.
	disk = "96m"
	// room is what somebody else's file leaves of it.
	room = 6 << 20
)

func TestFullDisk(t *testing.T) {
	t.Parallel() // it waits, mostly
	alone(t, func(t *testing.T) {
		t.Run("what is not acknowledged is what is missing, the status says why, and room is all that it needs", func(t *testing.T) {
			dir := tmpfs(t, disk)
			w := newWorld(t, dir, 4)
			p := w.start()
			w.connected()
			ballast := filepath.Join(dir, "somebody else's")
			must(t, os.WriteFile(ballast, make([]byte, free(t, dir)-room), 0o600))
			dials := w.steps.total(websocketfake.StepDial)
			w.fill(60)
			await(t, longest, func() (string, bool) {
				out, _ := w.tell("status")
				return "the status does not say that the disk is full:\n" + out, strings.Count(out, "store_full") >= len(w.bots)
			})
			pause(t, unhurried)
			want(t, "dials on a full disk", w.steps.total(websocketfake.StepDial)-dials, 0)
			want(t, "connections on a full disk", w.platform.Live(""), 0)
			out, _ := w.tell("status")
			if want := "free space on the disk of the data folder"; !strings.Contains(out, want) {
				t.Errorf("status: got\n%s\nwant the next step %q", out, want)
			}
			_, code := w.tell("status", "--ready")
			want(t, "exit code of status --ready", code, 1)
			stored := w.kept()
			missing, unacked := w.pushed-len(stored), w.pushed-w.acked()
			want(t, "not acknowledged on a full disk, against what is missing in the store", unacked, missing)
			if missing == 0 {
				t.Error("got every event stored, want the disk full before")
			}

			p.alive()
			must(t, os.Remove(ballast))
			freed := time.Now()
			w.arrived(2 * time.Minute)
			t.Logf("%d events of 100 kB: %d stored and acknowledged, %d missing and not acknowledged, no dial meanwhile; all there %v after room was made",
				w.pushed, len(stored), missing, time.Since(freed).Round(time.Millisecond))
			w.connected()
			want(t, "stored when there is room", len(rows(t, w.database())), w.pushed)
			await(t, longest, func() (string, bool) {
				out, code := w.tell("status", "--check")
				return "all is not well again:\n" + out, code == 0
			})
			p.stop()
			w.judge()
		})
	})
}

// fill has every bot say n large things, of 100 kB each in the store: the text is
// there twice, read and raw.
func (w *world) fill(n int) {
	text := strings.Repeat("x", 50_000)
	for i := range n {
		for _, bot := range w.bots {
			id := fmt.Sprintf("%s-big-%06d", bot, i)
			w.platform.PushFrame(bot, id, fmt.Appendf(nil, `{"type":"message","id":%q,"conversation":"c%d","text":%q}`, id, i%4, text))
			w.pushed++
		}
	}
}
