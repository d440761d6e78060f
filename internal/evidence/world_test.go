//go:build unix

package evidence_test

import (
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"leasehold/channel/websocket/websocketfake"
	"leasehold/delivery"
)

// world is a box with what stands around it: a platform that speaks, and a program
// that takes webhooks.
type world struct {
	*box
	platform *websocketfake.Server
	program  *program
	bots     []string
	steps    *steps
	pushed   int
	url      string // of the Postgres that it is on; "" = its own file
}

// ghost is how long after a kill the kernel may take to close the sockets of the
// dead, as the platform sees it.
const ghost = 500 * time.Millisecond

// longest is what may be waited for that takes no time on an idle machine: two suites
// under the race detector share two processors.
const longest = time.Minute

// unhurried is a while in which a storm of dials would show.
const unhurried = 8 * time.Second

// newWorld makes a world with a number of bots in a new folder under parent; "" =
// the system's temporary one.
func newWorld(t *testing.T, parent string, bots int) *world {
	t.Helper()
	return makeWorld(t, parent, bots, websocketfake.Options{}, "")
}

// makeWorld makes one whose platform has more rules than the least, and whose
// installations have more config, in which DEDUPES is what the platform does of each.
func makeWorld(t *testing.T, parent string, bots int, rules websocketfake.Options, more string) *world {
	t.Helper()
	w := &world{box: newBox(t, parent), program: newProgram(), steps: newSteps()}
	w.begins, w.program.step = w.steps.begin, w.steps.take

	server := httptest.NewServer(w.program)
	t.Cleanup(server.Close)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	rules.Grace, rules.Step = ghost, func(_, step string) { w.steps.take(step) }
	if rules.Received == nil {
		rules.Received = func(string, websocketfake.Message) { w.steps.take(stepReceived) }
	}
	w.platform = websocketfake.New(rules)
	served := make(chan error, 1)
	go func() { served <- w.platform.Serve(l) }()
	t.Cleanup(func() {
		w.platform.Close()
		if err := <-served; err != nil {
			t.Errorf("the platform: %v", err)
		}
	})

	var config strings.Builder
	fmt.Fprintf(&config, "[node]\nname = \"evidence\"\ndata_dir = \"data\"\n[[target]]\nname = \"app\"\ntype = \"http\"\nevents = [\"*\"]\nurl = %q\n", server.URL)
	for n := range bots {
		bot := fmt.Sprintf("bot%02d", n)
		w.bots = append(w.bots, bot)
		fmt.Fprintf(&config, installation, bot, l.Addr(), bot)
		config.WriteString(strings.ReplaceAll(more, "DEDUPES", fmt.Sprint(rules.Dedupes != nil && rules.Dedupes(bot))))
	}
	w.configure(config.String())
	return w
}

const installation = `
[[installation]]
id = "%s"
type = "websocket"
[installation.config]
url = "ws://%s/bot/%s"
ready_when = { pointer = "/type", equals = "hello" }
ack = '{"type":"ack","id":{{id}}}'
pointers = { id = "/id", type = "/type", text = "/text", conversation = "/conversation" }
`

// say has every bot say n more things.
func (w *world) say(n int) {
	for _, bot := range w.bots {
		w.platform.Push(bot, n)
	}
	w.pushed += n * len(w.bots)
}

// connected waits until every bot is.
func (w *world) connected() {
	w.Helper()
	await(w.T, longest, func() (string, bool) {
		n := w.platform.Live("")
		return fmt.Sprintf("got %d connections, want %d", n, len(w.bots)), n == len(w.bots)
	})
}

// reach waits for a step that must come.
func (w *world) reach(step <-chan struct{}) {
	w.Helper()
	late := time.NewTimer(longest)
	defer late.Stop()
	select {
	case <-step:
	case <-late.C:
		w.Fatal("the step that was waited for does not come")
	}
}

// acked counts what the platform was told to forget.
func (w *world) acked() (n int) {
	for _, bot := range w.bots {
		n += w.platform.AckedCount(bot)
	}
	return n
}

// arrived waits until all that was said was acknowledged and taken.
func (w *world) arrived(patience time.Duration) {
	w.Helper()
	defer func() {
		if w.Failed() {
			w.kept() // says what was lost
		}
	}()
	await(w.T, patience, func() (string, bool) {
		acked, taken := w.acked(), w.program.taken()
		return fmt.Sprintf("got %d acknowledged and %d taken, want %d", acked, taken, w.pushed), acked == w.pushed && taken == w.pushed
	})
}

// kept checks that all that was acknowledged is stored, once.
func (w *world) kept() map[string]row {
	w.Helper()
	driver, url := "pgx", w.url
	if url == "" {
		driver, url = "sqlite", fileURL(w.database())
	}
	stored := rowsAt(w.T, driver, url)
	for _, bot := range w.bots {
		allStored(w.T, bot, w.platform.Acked(bot), stored)
	}
	return stored
}

// allStored checks that what was acknowledged of a bot is stored.
func allStored(t testing.TB, bot string, acked []string, stored map[string]row) {
	t.Helper()
	lost := 0
	for _, event := range acked {
		if _, ok := stored[event]; ok {
			continue
		}
		if lost++; lost <= 3 {
			t.Errorf("%s was acknowledged and is not stored", event)
		}
	}
	if lost > 0 {
		t.Errorf("%s: got %d events lost, want none", bot, lost)
	}
}

// judge checks, after everything has arrived and the process has stopped, the
// books of both ends against each other and against the tables.
func (w *world) judge() {
	w.Helper()
	stored := w.kept()
	want(w.T, "events in the store", len(stored), w.pushed)
	for event, r := range stored {
		if r.state != delivery.Delivered {
			w.Errorf("%s: got %v, want it delivered", event, r.state)
		}
		if id := w.program.id(event); id != r.webhook {
			w.Errorf("%s: got webhook id %q, the store has %q", event, id, r.webhook)
		}
	}
	for _, c := range w.program.complaints() {
		w.Error(c)
	}
	w.single()
}

// single checks that no bot ever had two connections, nor broke the protocol.
func (w *world) single() {
	w.Helper()
	for _, bot := range w.bots {
		if n := w.platform.MaxConcurrent(bot); n > 1 {
			w.Errorf("%s: got %d connections at once, want one", bot, n)
		}
		for _, v := range w.platform.Violations(bot) {
			w.Errorf("%s: %s", bot, v)
		}
	}
}
