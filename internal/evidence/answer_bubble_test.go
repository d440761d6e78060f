//go:build unix

package evidence_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
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
	"leasehold/delivery/outbound"
	"leasehold/engine"
	"leasehold/internal/eventid"
	"leasehold/store/sqlite"
)

// mortal is a store and two networks as one process sees them, until it dies: from then
// on it neither writes nor says anything.
type mortal struct {
	*sqlite.Store
	cut func() // ends its connections

	mu    sync.Mutex // guards what follows
	steps int        // those before and after each call of the outside
	at    int        // the step at which it dies; 0 = it lives
	over  bool
}

var errDead = errors.New("killed")

// lives counts a step and reports whether the process comes through it.
func (m *mortal) lives() bool {
	m.mu.Lock()
	m.steps++
	dies := m.steps == m.at && !m.over
	m.over = m.over || dies
	over := m.over
	m.mu.Unlock()
	if dies {
		m.cut()
	}
	return !over
}

func (m *mortal) dead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.over
}

// step is one of the other ends' of which the process knows nothing.
func (m *mortal) step() { m.lives() }

func through[T any](m *mortal, call func() (T, error)) (v T, err error) {
	if !m.lives() {
		return v, errDead
	}
	got, err := call()
	if !m.lives() {
		return v, errDead
	}
	return got, err
}

func (m *mortal) Accept(ctx context.Context, r engine.AcceptRequest) (engine.Accepted, error) {
	return through(m, func() (engine.Accepted, error) { return m.Store.Accept(ctx, r) })
}

func (m *mortal) Pending(ctx context.Context, lease string, seq int64, target string, limit int) ([]delivery.Item, error) {
	return through(m, func() ([]delivery.Item, error) { return m.Store.Pending(ctx, lease, seq, target, limit) })
}

func (m *mortal) Payloads(ctx context.Context, seqs []int64) ([]delivery.Event, error) {
	return through(m, func() ([]delivery.Event, error) { return m.Store.Payloads(ctx, seqs) })
}

func (m *mortal) Mark(ctx context.Context, marks []delivery.Mark) ([]error, error) {
	return through(m, func() ([]error, error) { return m.Store.Mark(ctx, marks) })
}

func (m *mortal) Laden(ctx context.Context) ([]string, error) {
	return through(m, func() ([]string, error) { return m.Store.Laden(ctx) })
}

func (m *mortal) Outgoing(ctx context.Context, lease string, after int64, limit int) ([]outbound.Item, error) {
	return through(m, func() ([]outbound.Item, error) { return m.Store.Outgoing(ctx, lease, after, limit) })
}

func (m *mortal) BeginSending(ctx context.Context, t channel.Term, seq int64) (outbound.TakenUp, error) {
	return through(m, func() (outbound.TakenUp, error) { return m.Store.BeginSending(ctx, t, seq) })
}

func (m *mortal) EndSending(ctx context.Context, e outbound.End) error {
	_, err := through(m, func() (struct{}, error) { return struct{}{}, m.Store.EndSending(ctx, e) })
	return err
}

// EndSession, SaveBackoff and Release are what a dead process does not come to.
func (m *mortal) SaveBackoff(ctx context.Context, t channel.Term, b engine.Setback) error {
	if m.dead() {
		return errDead
	}
	return m.Store.SaveBackoff(ctx, t, b)
}

func (m *mortal) EndSession(ctx context.Context, session string) error {
	if m.dead() {
		return errDead
	}
	return m.Store.EndSession(ctx, session)
}

func (m *mortal) Release(ctx context.Context, session string, held []engine.Held) ([]string, error) {
	if m.dead() {
		return nil, errDead
	}
	return m.Store.Release(ctx, session, held)
}

// stage is a box that dies again and again, its platform, and a program that answers
// every event.
type stage struct {
	*testing.T
	street, backyard *channeltest.Net
	platform         *websocketfake.Server
	store            *sqlite.Store
	types            *channel.Types
	log              *logbook

	mu  sync.Mutex // guards now
	now *mortal    // the process that lives
}

func (s *stage) step() {
	s.mu.Lock()
	now := s.now
	s.mu.Unlock()
	if now != nil {
		now.step()
	}
}

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.step() // it has the event
	w.Header().Set("Content-Type", "application/json")
	_, text, _ := strings.Cut(string(body), `"text":"`)
	text, _, _ = strings.Cut(text, `"`)
	_, _ = io.WriteString(w, `{"text":"re: `+text+`"}`)
	_ = http.NewResponseController(w).Flush()
	s.step() // it has answered
}

// dial is a process's: one that is dead reaches nobody.
func (s *stage) dial(m *mortal, n *channeltest.Net) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if m.dead() {
			return nil, errDead
		}
		return n.DialContext(ctx, network, addr)
	}
}

// live runs one process, which dies at a step, until nothing more happens.
func (s *stage) live(at int) (m *mortal) {
	s.Helper()
	m = &mortal{Store: s.store, at: at, cut: func() { s.street.Cut(); s.backyard.Cut() }}
	s.mu.Lock()
	s.now = m
	s.mu.Unlock()
	log := slog.New(slog.NewJSONHandler(s.log, nil))
	repeats := func(ctx context.Context, id string) bool {
		row, err := s.store.Installation(ctx, id)
		must(s, err)
		c, err := s.types.Decode(row.Type, row.Config)
		must(s, err)
		return c.Idempotent()
	}
	mailer := outbound.New(m, outbound.Options{Log: log, Idempotent: repeats})
	can := func(string) (channel.Capabilities, bool) { return websocket.Spec.Can, true }
	d, err := delivery.New(m, []delivery.Target{{Name: "app", Kind: "http", URL: "http://" + programHost}},
		delivery.Options{Log: log, Dial: s.dial(m, s.backyard), Can: can, Replied: mailer.Wake})
	must(s, err)
	v, err := engine.New(m, s.types, &both{d, mailer}, engine.Options{
		Instance: "evidence", Host: "host", Name: "evidence", Clock: engine.GoClock(), Log: log, Connect: engine.Connect{Dial: s.dial(m, s.street)},
	})
	must(s, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(s.Context()))
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{v.Run, d.Run, mailer.Run} {
		running.Go(func() { _ = run(ctx) }) // a dead one may say so
	}
	for range 180 { // a connection that held for a minute forgets the deaths before it
		if time.Sleep(time.Second); m.dead() {
			break
		}
	}
	s.mu.Lock()
	s.now = nil // a shutdown is no life
	s.mu.Unlock()
	stop()
	running.Wait()
	return m
}

// both is what the program's grant is for.
type both struct {
	*delivery.Dispatcher
	mailer *outbound.Mailer
}

func (b *both) Hold(t channel.Term) { b.Dispatcher.Hold(t); b.mailer.Hold(t) }

func (b *both) Live(t channel.Term, s channel.Sender) { b.mailer.Live(t, s) }

func (b *both) Drop(ctx context.Context, t channel.Term) {
	b.Dispatcher.Drop(ctx, t)
	b.mailer.Drop(ctx, t)
}

// said counts how often the platform has a text.
func (s *stage) said(text string) (n int) {
	for _, m := range s.platform.Received("bot") {
		if m.Text == text {
			n++
		}
	}
	return n
}

// TestAnswersThroughDeath kills a process at every step on the way from an event to the
// program's answer on the platform, lets another one take over, and judges what there is.
func TestAnswersThroughDeath(t *testing.T) {
	for name, dedupes := range map[string]bool{"the platform drops repeats": true, "it does not": false} {
		t.Run("each answer is said once, whatever step a process dies at: "+name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "leasehold.db")
			synctest.Test(t, func(t *testing.T) { throughDeath(t, path, dedupes) })
		})
	}
}

func throughDeath(t *testing.T, path string, dedupes bool) {
	s := &stage{T: t, street: channeltest.NewNet(), backyard: channeltest.NewNet(), log: &logbook{}}
	s.platform = websocketfake.New(websocketfake.Options{
		Dedupes: func(string) bool { return dedupes }, Received: func(string, websocketfake.Message) { s.step() },
	})
	var running sync.WaitGroup
	defer running.Wait()
	street, err := s.street.Listen(platformHost)
	must(t, err)
	backyard, err := s.backyard.Listen(programHost)
	must(t, err)
	running.Go(func() { _ = s.platform.Serve(street) })
	defer s.platform.Close()
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	running.Go(func() { _ = server.Serve(backyard) })
	defer func() { _ = server.Close() }()
	s.store, err = sqlite.Open(t.Context(), path, sqlite.Options{ReserveBytes: -1})
	must(t, err)
	defer func() { must(t, s.store.Close()) }()
	s.types, err = channel.NewTypes(func(string, string) (string, error) { return "", nil }, websocket.Spec)
	must(t, err)
	row := admin.Installation{ID: "bot", Type: websocket.Spec.Name, Enabled: true, Source: "api", Config: s.platform.Config("ws://"+platformHost, "bot", nil)}
	_, err = s.store.PutInstallation(t.Context(), row, 0)
	must(t, err)

	at, unknown := 1, 0
	// What runs beside each other may take a step more in one life than in the next, so
	// that a step is passed over: then all of them are gone through again.
	met := func() bool { return unknown > 0 || s.platform.Repeats("bot") > 0 }
	for rounds := 1; ; at++ {
		text := fmt.Sprintf("event %d of bot", s.platform.Pushed("bot")+1)
		s.platform.Push("bot", 1)
		died := s.live(at).dead()
		s.live(0)
		state := s.judge("re: "+text, int64(s.platform.Pushed("bot")))
		n := s.said("re: " + text)
		switch {
		case n > 1, state == "sent" && n != 1, state == "unknown" && dedupes, state != "sent" && state != "unknown":
			t.Errorf("killed at step %d: got it said %d times, and %s", at, n, state)
		case state == "unknown":
			unknown++
		}
		if t.Failed() {
			t.Fatalf("it said last:\n%s", s.log.tail())
		}
		if died {
			continue
		}
		if met() || rounds == 3 {
			break
		}
		rounds, at = rounds+1, 0
	}
	t.Logf("killed at %d steps, %d unknown, %d repeats that the platform dropped", at-1, unknown, s.platform.Repeats("bot"))
	switch {
	case at < 15:
		t.Errorf("got %d steps, want those of the whole way", at-1)
	case !met():
		t.Error("got no message whose answer was lost, want those that were on their way")
	case unknown > 15: // five a round
		t.Errorf("got %d unknown, want those alone that were on their way", unknown)
	}
}

// judge returns the state of the message that answers an event; there is one.
func (s *stage) judge(text string, seq int64) string {
	s.Helper()
	all, err := s.store.Messages(s.Context(), admin.MessageQuery{Event: eventid.Event(seq)})
	must(s, err)
	if len(all) != 1 {
		s.Errorf("%q: got %d messages, want one", text, len(all))
		return ""
	}
	return all[0].State
}
