//go:build unix

package evidence_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// configuration is leasehold.toml as a person edits it.
type configuration struct {
	w    *world
	text string
}

func (w *world) configuration() *configuration {
	w.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, "leasehold.toml"))
	must(w.T, err)
	return &configuration{w, string(b)}
}

// edit replaces one text by another, and the file by a new one, as an editor does.
func (c *configuration) edit(old, text string) {
	c.w.Helper()
	if !strings.Contains(c.text, old) {
		c.w.Fatalf("the config has no %q", old)
	}
	c.text = strings.Replace(c.text, old, text, 1)
	c.write()
}

func (c *configuration) write() {
	c.w.Helper()
	fresh := filepath.Join(c.w.dir, "leasehold.toml.new")
	must(c.w.T, os.WriteFile(fresh, []byte(c.text), 0o600))
	must(c.w.T, os.Rename(fresh, filepath.Join(c.w.dir, "leasehold.toml")))
}

// part is the table of one bot.
func (c *configuration) part(bot string) string {
	c.w.Helper()
	_, after, ok := strings.Cut(c.text, fmt.Sprintf("\n[[installation]]\nid = %q\n", bot))
	if !ok {
		c.w.Fatalf("the config has no %s", bot)
	}
	part, _, _ := strings.Cut(after, "\n[[")
	return fmt.Sprintf("\n[[installation]]\nid = %q\n", bot) + part
}

// dials counts the connections that each bot ever had.
func (w *world) dials() map[string]int {
	all := map[string]int{}
	for _, bot := range w.bots {
		all[bot] = len(w.platform.Connections(bot))
	}
	return all
}

func TestReload(t *testing.T) {
	t.Run("of 200 connections, one whose settings changed is made anew, and no other", func(t *testing.T) {
		w := newWorld(t, "", 200)
		p := w.start()
		await(t, 5*time.Minute, func() (string, bool) { // they dial at 50 a second, where nothing else runs
			n := w.platform.Live("")
			return fmt.Sprintf("got %d connections, want 200", n), n == 200
		})
		c, before := w.configuration(), w.dials()

		// step edits the file and waits until that can be seen; then those bots have
		// dialled once more, and nobody else has.
		step := func(what string, edit func(), seen func() (string, bool), dialled ...string) {
			t.Helper()
			began := time.Now()
			edit()
			await(t, time.Minute, seen)
			t.Logf("%s: seen after %v", what, time.Since(began).Round(time.Millisecond))
			for _, bot := range dialled {
				before[bot]++
			}
			for bot, n := range w.dials() {
				if n != before[bot] {
					t.Errorf("%s: %s has dialled %d times, want %d", what, bot, n, before[bot])
				}
			}
		}
		live := func(bot string, dials int) func() (string, bool) {
			return func() (string, bool) {
				n, l := len(w.platform.Connections(bot)), w.platform.Live(bot)
				return fmt.Sprintf("%s has dialled %d times and has %d connections, want %d and 1", bot, n, l, dials), n == dials && l == 1
			}
		}
		said := func(word string) func() (string, bool) {
			return func() (string, bool) { return "the log has no " + word, strings.Contains(p.said(), word) }
		}
		shown := func(word string, args ...string) func() (string, bool) {
			return func() (string, bool) {
				out, _ := w.tell(args...)
				return fmt.Sprintf("%v never says %q: %s", args, word, out), strings.Contains(out, word)
			}
		}

		step("another address", func() { c.edit(`/bot/bot07"`, `/bot/bot07?again"`) }, live("bot07", 2), "bot07")
		w.bots = append(w.bots, "more")
		step("one more", func() {
			c.text += strings.ReplaceAll(c.part("bot08"), "bot08", "more")
			c.write()
		}, live("more", 1), "more")
		step("one less", func() { c.edit(c.part("bot09"), "") }, func() (string, bool) {
			n := w.platform.Live("bot09")
			return fmt.Sprintf("bot09 has %d connections, want none", n), n == 0
		})
		w.bots = slices.DeleteFunc(w.bots, func(bot string) bool { return bot == "bot09" })
		step("a label", func() { c.edit("id = \"bot10\"\n", "id = \"bot10\"\nlabels = { site = \"berlin\" }\n") }, shown("berlin", "installations", "show", "bot10"))
		step("another target", func() {
			c.edit("\n[[installation]]", "\n[[target]]\nname = \"log\"\ntype = \"log\"\n\n[[installation]]")
			c.edit("id = \"bot11\"\n", "id = \"bot11\"\ntargets = [\"app\", \"log\"]\n")
		}, shown("app, log", "installations", "show", "bot11"))
		step("a target's timeout", func() { c.edit("name = \"app\"\n", "name = \"app\"\ntimeout = \"7s\"\n") }, said(`"targets_changed":["app"]`))
		whole := c.text
		step("a broken file", func() { c.edit("[[target]]", "[[target]") }, said(`"config not applied"`))
		if out, code := w.tell("status", "--check"); code != 1 || !strings.Contains(out, "config is not applied (leasehold.toml:4:") {
			t.Errorf("status --check: got %d and %s, want 1 and the line of the fault", code, out)
		}
		w.say(1)
		w.arrived(time.Minute)
		step("a mended file", func() { c.text = whole; c.write() }, shown("all is well", "status"))
		p.stop()
		w.single()
	})

	t.Run("changes in the middle of the load lose nothing and deliver nothing twice", func(t *testing.T) {
		const changes = 40
		w := newWorld(t, "", 12)
		p := w.start()
		w.connected()
		c := w.configuration()
		url := regexp.MustCompile(`(?m)^url = "(http[^"]*)"$`).FindStringSubmatch(c.text)[1]
		first := c.part("bot00")
		target := c.text[strings.Index(c.text, "[[target]]"):strings.Index(c.text, "\n[[installation]]")]
		for n := range changes {
			w.say(20)
			next := fmt.Sprintf("[[target]]\nname = \"app\"\ntype = \"http\"\nurl = \"%s/%d\"\nconcurrency = %d\norder = %q\n",
				url, n%7, 1+n%5, []string{"conversation", "installation"}[n/3%2])
			c.edit(target, next)
			target = next
			if n%4 == 0 { // its connection is made anew, too
				next := strings.Replace(first, "/bot/bot00", fmt.Sprintf("/bot/bot00?%d", n), 1)
				c.edit(c.part("bot00"), next)
			}
			switch n % 3 {
			case 0:
				p.signal(syscall.SIGHUP)
			default:
				out, code := w.tell("reload")
				want(t, "exit code of reload: "+out, code, 0)
			}
		}
		w.arrived(60 * time.Second)
		out, _ := w.tell("status", "--check")
		if !strings.Contains(out, "all is well") {
			t.Errorf("got %s, want all well", out)
		}
		p.stop()
		w.judge()
		w.program.mu.Lock()
		defer w.program.mu.Unlock()
		want(t, "events delivered again", w.program.repeats, 0)
		t.Logf("%d events over %d changes, %d requests", w.pushed, changes, w.program.requests)
	})
}
