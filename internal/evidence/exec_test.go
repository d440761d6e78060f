//go:build linux

package evidence_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// programs are scripts of testdata, each with a bad habit.
var programs = []string{"crashes", "deaf", "floods", "forks", "half", "holds", "repeats"}

const (
	flood, racedFlood = 100_000, 5_000 // what floods.sh tells; less with the race detector, which is slow
	repeated          = 500            // what repeats.sh tells
	// execMemory is what a process with all of them may have in RAM at its worst: four
	// times what one with nothing to do has, and a third of what is told.
	execMemory = 128 << 20
)

func TestPrograms(t *testing.T) {
	t.Parallel() // it waits, mostly
	t.Run("programs of every bad habit lose nothing that was acknowledged, repeat nothing in the store, and leave nothing behind", func(t *testing.T) {
		w := newBox(t, "")
		notes, lib, flooded := t.TempDir(), absolute(t, "testdata"), flood
		if raced {
			flooded = racedFlood
		}
		config := "[node]\nname = \"evidence\"\ndata_dir = \"data\"\n[[target]]\nname = \"log\"\ntype = \"log\"\nevents = [\"nothing\"]\n"
		for _, name := range programs {
			config += fmt.Sprintf("[[installation]]\nid = %q\ntype = \"exec\"\n[installation.config]\ncommand = [%q]\nenv = { NOTES = %q, LIB = %q, NAME = %q, FLOOD = \"%d\" }\n",
				name, filepath.Join(lib, name+".sh"), notes, lib, name, flooded)
		}
		w.configure(config)

		run := w.start()
		for range 3 {
			w.toldMore(notes)
			run.kill()
			run = w.start()
		}
		await(t, 3*time.Minute, func() (string, bool) {
			run.alive()
			got := w.told()
			text := fmt.Sprintf("got %v told, %d things acknowledged\n%s", got, lines(notes, "acked"), run.tail())
			return text, got["floods"] == flooded && got["repeats"] == repeated && last(notes, "acked") == repeated
		})
		peak := counter(t, run.pid(), "VmHWM") * 1024
		if !raced && peak > execMemory {
			t.Errorf("got %d bytes in RAM at worst, want at most %d", peak, execMemory)
		}
		// One of each that lives, with its offspring, and none of an earlier process.
		await(t, longest, func() (string, bool) {
			got := offspring(notes)
			n := 0
			for _, p := range got {
				if strings.Contains(p, "100000") {
					n++
				}
			}
			return fmt.Sprintf("got %q alive, want two of forks.sh asleep", got), n == 2
		})
		for _, name := range []string{"crashes", "half", "holds"} {
			await(t, longest, func() (string, bool) { // between two waits it lives for a moment
				out, _ := w.tell("status")
				return fmt.Sprintf("got\n%s\nwant %s to wait before it is started again", out, name), backsOff(out, name)
			})
		}
		if n := lines(notes, "crashes.runs"); n > 12 {
			t.Errorf("got %d starts of a program that dies at once, want the waits to grow", n)
		}
		run.stop()

		await(t, longest, func() (string, bool) {
			got := offspring(notes)
			return fmt.Sprintf("got %q alive after the stop, want nothing", got), len(got) == 0
		})
		want(t, "events", fmt.Sprint(w.told()), fmt.Sprint(map[string]int{
			"crashes": 3, "deaf": 1, "floods": flooded, "forks": 1, "half": 1, "holds": 1, "repeats": repeated,
		}))
		t.Logf("%d starts of what dies at once, %d of what lives; %d MB in RAM at worst", lines(notes, "crashes.runs"), lines(notes, "forks.runs"), peak>>20)
	})
}

// toldMore waits until something was acknowledged again, within repeats.sh.
func (w *box) toldMore(notes string) {
	w.Helper()
	before := lines(notes, "acked")
	await(w.T, time.Minute, func() (string, bool) {
		n := lines(notes, "acked")
		return fmt.Sprintf("got %d acknowledged, want more than %d", n, before), n > before+20 || last(notes, "acked") == repeated
	})
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	must(t, err)
	return abs
}

// told counts the events of each installation, and wants each once.
func (w *box) told() map[string]int {
	w.Helper()
	db, err := sql.Open("sqlite", "file:"+w.database()+"?_query_only=1&_busy_timeout=5000")
	must(w.T, err)
	defer func() { must(w.T, db.Close()) }()
	all, err := db.QueryContext(w.Context(), `SELECT installation_id, count(*), count(DISTINCT event_id) FROM event GROUP BY installation_id`)
	must(w.T, err)
	defer func() { must(w.T, all.Close()) }()
	got := map[string]int{}
	for all.Next() {
		var name string
		var n, different int
		must(w.T, all.Scan(&name, &n, &different))
		want(w.T, "events of "+name+", against different ones", n, different)
		got[name] = n
	}
	must(w.T, all.Err())
	return got
}

// lines counts what a program has noted; last is the number that it noted last.
func lines(notes, name string) int { return strings.Count(noted(notes, name), "\n") }

func last(notes, name string) int {
	all := strings.Fields(noted(notes, name))
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(all[len(all)-1]) // half a line is no number yet
	return n
}

func noted(notes, name string) string {
	b, _ := os.ReadFile(filepath.Join(notes, name)) // not there yet: nothing is noted
	return string(b)
}

// offspring are the commands of all processes that have a folder in their
// environment, but for those that are dead.
func offspring(dir string) (all []string) {
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		env, err := os.ReadFile(filepath.Join(p, "environ"))
		if err != nil || !strings.Contains(string(env), "NOTES="+dir+"\x00") {
			continue // it has ended meanwhile, or is none of ours
		}
		cmd, err := os.ReadFile(filepath.Join(p, "cmdline"))
		if err == nil && len(cmd) > 0 { // a dead one has none
			all = append(all, strings.ReplaceAll(strings.Trim(string(cmd), "\x00"), "\x00", " "))
		}
	}
	return all
}

// backsOff reports whether the status says that an installation waits.
func backsOff(status, name string) bool {
	for line := range strings.Lines(status) {
		if strings.HasPrefix(line, name+" ") {
			return strings.Contains(line, "backoff") || strings.Contains(line, "connecting")
		}
	}
	return false
}

// counter reads a number of a process's status, in kB.
func counter(t *testing.T, pid int, name string) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	for line := range strings.Lines(string(b)) {
		if key, value, _ := strings.Cut(line, ":"); key == name {
			n, err := strconv.Atoi(strings.Fields(value)[0])
			must(t, err)
			return n
		}
	}
	t.Fatalf("process %d has no %s", pid, name)
	return 0
}
