package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/engine"
	"leasehold/internal/redact"
	"leasehold/store/sqlite"
)

// chat is the config of the channel type that the tests know.
type chat struct {
	URL   string           `json:"url" channel:"required,connection" doc:"Where to connect."`
	Token channel.Secret   `json:"token" channel:"connection" doc:"The bot's token."`
	Note  channel.Text     `json:"note"`
	Every channel.Duration `json:"every" default:"20s"`
}

var chatType = channel.Define(channel.Definition[chat]{
	Name: "chat", Summary: "A platform for tests.", Can: channel.Capabilities{Send: true, Threads: true, Typing: true, Call: true},
	Limits: channel.Limits{All: channel.Rate{N: 30, Per: time.Second}, Chat: channel.Rate{N: 20, Per: time.Minute, Burst: 5}},
	Writes: channel.Writing{Markup: "mrkdwn", Limit: 4000, Unit: "characters"},
	Hosts:  []string{"chat.example.org:443"}, Deaf: 50 * time.Second,
	New: func(_ context.Context, c chat) (channel.Channel, error) {
		if !strings.HasPrefix(c.URL, "ws") {
			return nil, errors.New("url: must begin with ws")
		}
		return nil, nil
	},
})

// world is a real store with handlers on it.
type world struct {
	t       *testing.T
	store   *sqlite.Store
	options admin.Options
	log     bytes.Buffer
	term    channel.Term
	events  int
}

const secretValue = "planted-secret-5e1b"

func newWorld(t *testing.T) *world {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "leasehold.db"), sqlite.Options{ReserveBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &world{t: t, store: s}
	secrets := redact.New()
	types, err := channel.NewTypes(func(kind, name string) (string, error) {
		if name == "THERE" {
			secrets.Add(secretValue)
			return secretValue, nil
		}
		return "", fmt.Errorf("%s %s is not set", kind, name)
	}, chatType)
	if err != nil {
		t.Fatal(err)
	}
	w.options = admin.Options{
		Store: s, Types: types, Mode: admin.Stopped, Version: admin.Version{Version: "9"}, FingerprintKey: []byte("key"), Redact: secrets,
		Declared: func(id string) string { return map[string]string{"filed": "leasehold.toml:12"}[id] },
		Log:      slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	return w
}

// answer is what a request got.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) problem(t *testing.T) admin.Problem {
	t.Helper()
	var p admin.Problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("got %q as %s, want a problem document", a.body, a.header.Get("Content-Type"))
	}
	return p
}

// do makes a request: header is name, value, name, value, …
func (w *world) do(method, path, body string, header ...string) answer {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	admin.New(w.options).ServeHTTP(rec, r)
	b, _ := io.ReadAll(rec.Result().Body)
	return answer{rec.Code, rec.Header(), string(b)}
}

// want fails unless the request got this status and its body has these words.
func (w *world) want(a answer, status int, words ...string) answer {
	w.t.Helper()
	if a.status != status {
		w.t.Fatalf("status: got %d %s, want %d", a.status, a.body, status)
	}
	for _, word := range words {
		if !strings.Contains(a.body, word) {
			w.t.Errorf("body: got %s, want %q in it", a.body, word)
		}
	}
	return a
}

// put makes an installation through the handlers.
func (w *world) put(id string) {
	w.t.Helper()
	w.want(w.do("PUT", "/v1/installations/"+id, `{"type":"chat","config":{"url":"ws://x/`+id+`"},"labels":{"tenant":"`+id+`"}}`), http.StatusCreated)
}

// hold opens a session and a term for installation acme, as an engine does.
func (w *world) hold() {
	w.t.Helper()
	const id = "acme"
	ctx := w.t.Context()
	if w.term.Owner == "" {
		if _, err := w.store.OpenSession(ctx, engine.SessionRequest{ID: "session", Instance: "instance", Host: "boot/1", TTL: time.Minute, Name: "gw", Version: "9", Weight: 1}); err != nil {
			w.t.Fatal(err)
		}
	}
	grants, err := w.store.Claim(ctx, "session", []string{id})
	if err != nil || len(grants) != 1 {
		w.t.Fatalf("claim: got %v, %v, want one grant", grants, err)
	}
	w.term = channel.Term{Installation: id, Owner: "session", Epoch: grants[0].Epoch}
	if w.term.Run, _, err = w.store.BeginTerm(ctx, w.term, ""); err != nil {
		w.t.Fatal(err)
	}
}

// accept stores n events for the installation that is held, each for targets.
func (w *world) accept(n int, targets ...string) {
	w.t.Helper()
	var heard []engine.Heard
	for range n {
		w.events++
		e := channel.Event{ID: fmt.Sprintf("p%d", w.events), Type: "message", Text: fmt.Sprintf("text %d %s", w.events, secretValue)}
		body, err := json.Marshal(e)
		if err != nil {
			w.t.Fatal(err)
		}
		heard = append(heard, engine.Heard{Event: e, Body: body, Targets: targets})
	}
	if _, err := w.store.Accept(w.t.Context(), engine.AcceptRequest{Term: w.term, Events: heard}); err != nil {
		w.t.Fatal(err)
	}
}

// client asks the handlers in this process.
func (w *world) client() *admin.Client {
	c := admin.NewClient(admin.InProcess(admin.New(w.options)))
	w.t.Cleanup(c.Close)
	return c
}

// process stands for the running program.
type process struct {
	links     map[string]admin.Status
	targets   []admin.Target
	unready   error
	troubles  []admin.Trouble
	mu        sync.Mutex // guards what follows
	woken     []string
	triggered int
	limited   map[string]string // by lease/installation/conversation
	call      func(ctx context.Context, lease string, c channel.Call) (json.RawMessage, error)
}

func (p *process) Info() admin.NodeInfo {
	return admin.NodeInfo{Instance: "instance", Name: "gw", PID: 7}
}
func (p *process) Links() map[string]admin.Status  { return p.links }
func (p *process) Targets() []admin.Target         { return p.targets }
func (p *process) Troubles() []admin.Trouble       { return p.troubles }
func (p *process) Ready(ctx context.Context) error { return p.unready }

func (p *process) Wake(leases []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.woken = append(p.woken, leases...)
}

func (p *process) WakeMessages(lease string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.woken = append(p.woken, "messages of "+lease)
}

func (p *process) Limited(lease, installation, conversation string) string {
	return p.limited[lease+"/"+installation+"/"+conversation]
}

func (p *process) Call(ctx context.Context, lease string, c channel.Call) (json.RawMessage, error) {
	return p.call(ctx, lease, c)
}

func (p *process) Trigger() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.triggered++
}
