//go:build unix

package evidence_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/websocket"
	"leasehold/channel/websocket/websocketfake"
	"leasehold/delivery"
	"leasehold/engine"
	"leasehold/store/sqlite"
)

const (
	platformHost = "platform.test:80"
	programHost  = "program.test:80"
)

// bubble is the whole stack in simulated time, wired as the program wires it: a
// store on a real file, an engine, a dispatcher, and two networks in memory, one
// to the platform and one to the user's program.
type bubble struct {
	*testing.T
	path             string
	street, backyard *channeltest.Net
	platform         *websocketfake.Server
	program          *program
	store            *sqlite.Store
	dispatcher       *delivery.Dispatcher
	engine           *engine.Supervisor
	bots             []string
	pushed           int
	log              *logbook
}

// inBubble runs f once every bot is connected, and stops everything after it in
// the program's order. Whatever is left running fails the bubble.
func inBubble(t *testing.T, bots int, target delivery.Target, f func(b *bubble)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leasehold.db")
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{
			T: t, path: path, street: channeltest.NewNet(), backyard: channeltest.NewNet(),
			platform: websocketfake.New(websocketfake.Options{}), program: newProgram(), log: &logbook{},
		}
		for n := range bots {
			b.bots = append(b.bots, fmt.Sprintf("bot%02d", n))
		}
		var running sync.WaitGroup
		defer running.Wait()
		defer b.serve(&running)()
		b.open()
		defer func() { must(t, b.store.Close()) }()
		defer b.launch(&running, target)()
		defer b.street.Resume() // a goodbye must not wait for a dead line
		b.within(10*time.Second, "every bot is connected", func() bool { return b.engine.Status().Connected == bots })
		f(b)
		if t.Failed() {
			t.Logf("it said last:\n%s", b.log.tail())
		}
	})
}

// serve runs the two far ends until the answer is called.
func (b *bubble) serve(running *sync.WaitGroup) (closeEnds func()) {
	street, err := b.street.Listen(platformHost)
	must(b, err)
	backyard, err := b.backyard.Listen(programHost)
	must(b, err)
	running.Go(func() { _ = b.platform.Serve(street) })
	server := &http.Server{Handler: b.program, ReadHeaderTimeout: time.Minute}
	running.Go(func() { _ = server.Serve(backyard) })
	return func() {
		b.platform.Close()
		_ = server.Close()
	}
}

// open makes the store and the installations in it.
func (b *bubble) open() {
	var err error
	b.store, err = sqlite.Open(b.Context(), b.path, sqlite.Options{ReserveBytes: -1})
	must(b, err)
	for _, bot := range b.bots {
		row := admin.Installation{ID: bot, Type: websocket.Spec.Name, Enabled: true, Source: "api", Config: b.platform.Config("ws://"+platformHost, bot, nil)}
		_, err := b.store.PutInstallation(b.Context(), row, 0)
		must(b, err)
	}
}

// launch starts the dispatcher and the engine; the answer stops them in reverse.
func (b *bubble) launch(running *sync.WaitGroup, target delivery.Target) (stop func()) {
	log := slog.New(slog.NewJSONHandler(b.log, nil))
	target.Name, target.Kind, target.URL = "app", "http", "http://"+programHost+"/events"
	var err error
	b.dispatcher, err = delivery.New(b.store, []delivery.Target{target}, delivery.Options{Log: log, Dial: b.backyard.DialContext})
	must(b, err)
	types, err := channel.NewTypes(func(string, string) (string, error) { return "", nil }, websocket.Spec)
	must(b, err)
	b.engine, err = engine.New(b.store, types, b.dispatcher, engine.Options{
		Instance: "evidence", Host: "host", Name: "evidence", Clock: engine.GoClock(), Log: log,
		Connect: engine.Connect{Dial: b.street.DialContext},
	})
	must(b, err)
	delivering, stopDelivering := context.WithCancel(context.WithoutCancel(b.Context()))
	holding, stopHolding := context.WithCancel(context.WithoutCancel(b.Context()))
	delivered, held := make(chan error, 1), make(chan error, 1)
	running.Go(func() { delivered <- b.dispatcher.Run(delivering) })
	running.Go(func() { held <- b.engine.Run(holding) })
	return func() {
		stopHolding()
		must(b, <-held)
		stopDelivering()
		must(b, <-delivered)
	}
}

// within lets simulated time pass until so holds, and returns how long that was.
func (b *bubble) within(d time.Duration, what string, so func() bool) time.Duration {
	b.Helper()
	for began := time.Now(); ; time.Sleep(min(d/100, 100*time.Millisecond)) {
		synctest.Wait()
		took := time.Since(began)
		if so() {
			return took
		}
		if took > d {
			b.Fatalf("%s: not within %v\n%s", what, d, b.log.tail())
		}
	}
}

// conversations is how many the platform lets each bot have, in turn.
const conversations = 4

// say has every bot say one more thing in each of its conversations.
func (b *bubble) say() {
	for _, bot := range b.bots {
		b.platform.Push(bot, conversations)
	}
	b.pushed += conversations * len(b.bots)
}

func (b *bubble) circuit() delivery.CircuitState { return b.dispatcher.Stats().Targets[0].State }

// acked counts what the platform was told to forget.
func (b *bubble) acked() (n int) {
	for _, bot := range b.bots {
		n += b.platform.AckedCount(bot)
	}
	return n
}

// arrived checks that everything that was said was stored, delivered and marked, in
// order per conversation, and over one connection of each bot.
func (b *bubble) arrived() {
	b.Helper()
	want(b, "acknowledged", b.acked(), b.pushed)
	want(b, "taken by the program", b.program.taken(), b.pushed)
	lanes := b.program.lanes()
	for _, bot := range b.bots {
		for c := range conversations {
			var said []string
			for n := c; n < b.platform.Pushed(bot); n += conversations {
				said = append(said, fmt.Sprintf("%s-%06d", bot, n+1))
			}
			lane := fmt.Sprintf("%s c%d", bot, c)
			want(b, "order in which "+lane+" arrived", fmt.Sprint(lanes[lane]), fmt.Sprint(said))
		}
	}
	for _, c := range b.program.complaints() {
		b.Error(c)
	}
	stored := rows(b, b.path)
	want(b, "stored", len(stored), b.pushed)
	for event, r := range stored {
		if r.state != delivery.Delivered || r.webhook != b.program.id(event) {
			b.Errorf("%s: got %v as %s, want it delivered as %s", event, r.state, r.webhook, b.program.id(event))
		}
	}
}

// logbook keeps what the stack says.
type logbook struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logbook) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.b.String()
	return all[max(0, len(all)-3000):]
}
