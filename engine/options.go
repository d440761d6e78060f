package engine

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Options say who a node is and how it behaves. The zero value of a field is its
// default, except Instance, which has none.
type Options struct {
	Instance string // random, of the data folder, under its lock
	Previous string // the session id of this folder's last process; "" = none
	Host     string // boot id and data folder: with the same host Previous is dead
	Name     string // for people
	Version  string
	Weight   int // of this node in the fair share; default 1

	Timing  Timing  // default DefaultTiming
	Connect Connect // how channels dial

	// DrainTimeout bounds a polite shutdown; then everything is closed. Default 20 s.
	DrainTimeout time.Duration
	// EventLimit is how large one event may be as JSON, in bytes. Default 1 MiB: a
	// hundred times the largest chat message, and small enough that a thousand of
	// them fit into memory at once.
	EventLimit int

	// Seal encrypts the follow-up address of an event of an installation for the store
	// to keep. nil, the func or its answer: it cannot be, and is dropped, which Seal
	// itself tells; the event is kept in any case. It is called before an event is
	// stored, which waits for it.
	Seal func(ctx context.Context, installation, event, address string) []byte

	Clock Clock        // default SystemClock
	Log   *slog.Logger // default: discard
	Rand  *rand.Rand   // default: seeded by the system
	// OnSession is called with the id of a session that is about to be opened: keep
	// it durably as the next process's Previous. An error delays the opening.
	OnSession func(id string) error
	Observer  Observer // default: nobody is told
}

// Observer is told of what people may want to know, as it happens. Its methods do
// not block: the first and the last are called by the loop that everything waits for.
type Observer interface {
	// Link: the state of an installation's link changed, or its reason did. The
	// zero State before stands for one that was not known.
	Link(was, now LinkStatus)
	// Notice: a channel told of something that needs no restart, such as a gap.
	Notice(installation, code, words string)
	// Store: the store takes nothing, and why; nil: it takes everything again.
	Store(err error)
}

type nobody struct{}

func (nobody) Link(LinkStatus, LinkStatus)   {}
func (nobody) Notice(string, string, string) {}
func (nobody) Store(error)                   {}

// Connect is how channels reach the network.
type Connect struct {
	PerTypeRate float64 // dials per second and channel type; default 50
	InFlight    int     // dials at once, of all types; default 64
	Proxy       func(*http.Request) (*url.URL, error)
	RootCAs     *x509.CertPool // nil = the system's
	// Dial replaces the network; tests put an in-memory one here.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

func (o *Options) defaults() error {
	if o.Instance == "" {
		return errors.New("engine: Options.Instance is empty")
	}
	if o.Timing == (Timing{}) {
		o.Timing = DefaultTiming()
	}
	setDefault(&o.Weight, 1)
	setDefault(&o.Connect.PerTypeRate, 50)
	setDefault(&o.Connect.InFlight, 64)
	setDefault(&o.DrainTimeout, 20*time.Second)
	setDefault(&o.EventLimit, 1<<20)
	if o.Clock == nil {
		o.Clock = SystemClock()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Rand == nil {
		o.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	if o.OnSession == nil {
		o.OnSession = func(string) error { return nil }
	}
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	if o.Connect.Dial == nil {
		d := &net.Dialer{KeepAlive: 30 * time.Second}
		o.Connect.Dial = d.DialContext
	}
	return o.Timing.Validate()
}

func setDefault[T int | float64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}
