package channel

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Goodbye is how long Run may take to return after its context ended for any
// reason but ErrFenced. Then its sockets are closed under it. Two seconds: long
// enough for a close handshake, short enough that a rolling restart is not seen.
const Goodbye = 2 * time.Second

// Backend is what stands behind a Link: the engine's term, or a test's. Its
// methods carry the contract of the Link methods of the same name.
type Backend interface {
	Installation() string
	Riders() []Rider
	Cursor() []byte
	Accept(ctx context.Context, b Batch) error
	Ask(ctx context.Context, e Event) (json.RawMessage, bool)
	Ready(Info)
	Alive()
	Notice(code, words string)
	Spend(ctx context.Context, n int) error
	Go(f func())
	Guard(f func())
	OnKill(f func())
	DialContext(ctx context.Context, network, addr string) (net.Conn, error)
	DialTLS(ctx context.Context, network, addr string, cfg *tls.Config) (net.Conn, error)
	HTTPClient() *http.Client
	Successor(ctx context.Context) error
	Log() *slog.Logger
}

// Link is what the engine gives a Channel for one term. All its methods are safe
// for concurrent use.
type Link struct{ b Backend }

// NewLink makes a Link of its backend. The engine and channeltest call it.
func NewLink(b Backend) *Link { return &Link{b} }

// Rider is an installation that rides on another's connection.
type Rider struct {
	ID     string
	Config any // decoded and resolved: the type's own config struct
}

// Info is what the platform said when it took the connection.
type Info struct {
	Identity    string // who we are there
	Connections int    // how many connections the platform counts; 0 = it did not say
}

// Installation is the id of the installation that the link belongs to.
func (l *Link) Installation() string { return l.b.Installation() }

// Riders are the rows with via = this installation, kept current.
func (l *Link) Riders() []Rider { return l.b.Riders() }

// Cursor is the stream position as last committed; nil at first.
func (l *Link) Cursor() []byte { return l.b.Cursor() }

// Accept makes a batch durable. When it returns nil, every event of it is in
// the store, or was already, and the cursor with them: acknowledge now. Calls of
// one link take effect in the order they were made; concurrent calls share a
// commit.
//
// ErrFenced: the lease is gone; stop at once. ErrStore: nothing was kept; do not
// acknowledge, and end the connection. ErrTooLarge: what was too large was
// dropped and counted, everything else is durable. When ctx ends first the
// outcome is unknown.
func (l *Link) Accept(ctx context.Context, b Batch) error { return l.b.Accept(ctx, b) }

// Ask waits up to 2.5 s for the user's program's own answer to an interaction, which
// it gives when the event is delivered to it; false: answer "working" and let the
// reply come later. It does not accept the event: call it beside that, in a goroutine
// of its own that began before, never on the reader's.
func (l *Link) Ask(ctx context.Context, e Event) (json.RawMessage, bool) { return l.b.Ask(ctx, e) }

// Ready says that the platform said we are connected: a hello, a READY, a
// CONNACK, an answered poll. A dial that returned is not enough.
func (l *Link) Ready(i Info) { l.b.Ready(i) }

// Alive is a proof of life: an inbound frame, a pong, an answered poll; not an
// event's absence and not a write that returned. It is kept in memory only.
func (l *Link) Alive() { l.b.Alive() }

// Notice tells people something that needs no restart: a gap, a missing intent.
func (l *Link) Notice(code, words string) { l.b.Notice(code, words) }

// Spend takes n from what the platform allows us per day; it is counted on disk
// before it returns. An error means: do not do it.
func (l *Link) Spend(ctx context.Context, n int) error { return l.b.Spend(ctx, n) }

// Go runs f in a goroutine of the term, which the term waits for. A panic in it
// ends the term and nothing else. A channel starts no goroutine in another way.
func (l *Link) Go(f func()) { l.b.Go(f) }

// Guard runs f, a callback that a library makes on a goroutine of its own, with
// the same care.
func (l *Link) Guard(f func()) { l.b.Guard(f) }

// OnKill registers f to be called once when the term's sockets are closed under
// it. It must not block. After the kill f is called at once.
func (l *Link) OnKill(f func()) { l.b.OnKill(f) }

// DialContext dials for the term, through nothing. The connection is closed with
// the term; dialled after its end it is refused with ErrKilled. Ten seconds at most.
func (l *Link) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return l.b.DialContext(ctx, network, addr)
}

// DialTLS is DialContext with a TLS handshake; the configured CA applies. A nil
// cfg is the default one.
func (l *Link) DialTLS(ctx context.Context, network, addr string, cfg *tls.Config) (net.Conn, error) {
	return l.b.DialTLS(ctx, network, addr, cfg)
}

// HTTPClient is a client whose sockets belong to the term: proxy, private CA and
// HTTP/2 pings applied. Each call returns one with a fresh Transport. It follows
// no redirect to another host with our headers. Give each request a deadline.
func (l *Link) HTTPClient() *http.Client { return l.b.HTTPClient() }

// Successor waits for a slot of the dial limiter for an overlapping socket.
func (l *Link) Successor(ctx context.Context) error { return l.b.Successor(ctx) }

// Log is the term's logger; it carries the installation and its type.
func (l *Link) Log() *slog.Logger { return l.b.Log() }
