package delivery

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"leasehold/channel"
	"leasehold/internal/child"
	"leasehold/internal/unixurl"
)

// Order says what stays in order on the way to a target, one at a time.
type Order string

// The orders.
const (
	PerConversation Order = "conversation" // and thread: nothing else waits for it
	PerInstallation Order = "installation"
	Unordered       Order = "none"
)

// OnFailure says what the events behind a failing one do.
type OnFailure string

// What a lane does once an event has failed quickTries times.
const (
	Skip OnFailure = "skip" // goes on without it; it is tried again later, out of order
	Hold OnFailure = "hold" // waits for it, until it is delivered or dead
)

// Target is where events go. Zero values stand for the defaults.
type Target struct {
	Name string // in config, store and logs
	Kind string // http, command, log, pull; anything when Sink is set
	URL  string // http://, https:// or http+unix:///SOCKET:/PATH; http only

	// Command is a program and its arguments, run without a shell; command only. They
	// hold no secret: everybody on the machine can read them.
	Command []string
	Env     map[string]channel.Text // variables of its environment; command only

	// Events lists the types that the target gets: exact ("message"), a family
	// ("message.*"), or everything ("*"). Only a pattern that begins with "system."
	// matches a system event. Empty means "*": what a channel type calls its events
	// (heartbeat, raw) cannot be known here, and a first event that silently goes
	// nowhere is worse than one too many.
	Events []string
	// Kinds, if there are any, are the kinds of conversation that the target gets
	// events of: what a channel type calls them ("direct", "topic").
	Kinds []string
	// Match narrows that to events whose fields have one of these values each, in the
	// language of internal/eventmatch. Neither concerns system events.
	Match map[string][]string

	Timeout     time.Duration // of one attempt, from its first byte to the answer; 30 s
	MaxAge      time.Duration // since accepted; then it is dead. 24 h: chat goes stale. Not for replays
	MaxAttempts int           // then it is dead, once MinAge old; 12, which MaxAge comes before unless it is raised
	Order       Order         // conversation
	Concurrency int           // calls at the same time; 32
	OnFailure   OnFailure     // skip
	Batch       int           // events in one request, at most, if its sink is a Batcher; 1
	NoRaw       bool          // leave out what the platform itself sent
	NoReplies   bool          // what it answers is not sent to anybody

	Headers map[string]channel.Text // sent with each call; http only
	CAFile  string                  // PEM: trusted beside the system's authorities; http only
	Gzip    bool                    // compress bodies of a KB and more; http only

	// SigningKeys sign each call after Standard Webhooks, every one of them, in this
	// order; see NewSigningKey. None = unsigned. While Options.Clock is held, a target
	// that signs is down: what it says of the time would be refused. Http only.
	SigningKeys []channel.Text

	// ClientCert is a file with the certificate that we show, and its chain, in PEM;
	// ClientKey is its key, in PEM, not a file. Both or none; http only.
	ClientCert string
	ClientKey  channel.Text
	// Deny are addresses that the target may not have, looked at when a connection is
	// made; see DenyCIDRs. Through a proxy it is the proxy's that is looked at; http only.
	Deny []netip.Prefix

	// Off is why nothing is sent to the target until somebody switches it on; "" = it
	// is on. What comes for it waits.
	Off string

	Sink Sink // for embedders and tests: takes the deliveries instead of Kind's own

	rules []rule // Match, read
}

// MinAge is how old a delivery is before attempts alone can kill it: a deploy
// that goes wrong is noticed and mended within the hour.
const MinAge = time.Hour

// The defaults of a Target.
const (
	DefaultTimeout     = 30 * time.Second
	DefaultMaxAge      = 24 * time.Hour
	DefaultMaxAttempts = 12
	DefaultConcurrency = 32
)

// withDefaults fills in what t leaves open.
func (t Target) withDefaults() Target {
	t.Timeout = orDefault(t.Timeout, DefaultTimeout)
	t.MaxAge = orDefault(t.MaxAge, DefaultMaxAge)
	t.MaxAttempts = orDefault(t.MaxAttempts, DefaultMaxAttempts)
	t.Concurrency = orDefault(t.Concurrency, DefaultConcurrency)
	t.Batch = orDefault(t.Batch, 1)
	t.Order = orDefault(t.Order, PerConversation)
	t.OnFailure = orDefault(t.OnFailure, Skip)
	if len(t.Events) == 0 {
		t.Events = []string{"*"}
	}
	t.rules = rulesOf(t.Match, noFault)
	return t
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// check returns every fault of t, each with its key.
func (t Target) check() error {
	var errs []error
	fault := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("target %q: %s: %s", t.Name, key, fmt.Sprintf(format, args...)))
	}
	if t.Name == "" {
		fault("name", "is missing")
	}
	switch {
	case t.Sink != nil:
	case t.Kind == "http":
		if _, err := parseURL(t.URL); err != nil {
			fault("url", "%v", err)
		}
	case t.Kind == "command":
		t.checkCommand(fault)
	case t.Kind == "log", t.Kind == "pull":
	default:
		fault("type", "must be http, command, log or pull (got %q)", t.Kind)
	}
	if t.Sink == nil && (t.ClientCert == "") != (t.ClientKey.Reveal() == "") {
		fault("client_cert", "goes with client_key, and client_key with it")
	}
	if t.Sink == nil && t.Kind != "http" && t.URL != "" {
		fault("url", "a %s target has none", t.Kind)
	}
	if t.Sink == nil && t.Kind != "http" && len(t.SigningKeys) > 0 {
		fault("signing_keys", "a %s target has none", t.Kind)
	}
	for i, key := range t.SigningKeys {
		if err := CheckSigningKey(key.Reveal()); err != nil {
			fault("signing_keys", "key %d %v", i+1, err)
		}
	}
	for key, d := range map[string]time.Duration{"timeout": t.Timeout, "max_age": t.MaxAge} {
		if d < 0 {
			fault(key, "must be positive (got %s)", d)
		}
	}
	for key, n := range map[string]int{"max_attempts": t.MaxAttempts, "concurrency": t.Concurrency, "batch": t.Batch} {
		if n < 0 {
			fault(key, "must be positive (got %d)", n)
		}
	}
	if o := t.Order; o != "" && o != PerConversation && o != PerInstallation && o != Unordered {
		fault("order", "must be conversation, installation or none (got %q)", o)
	}
	if o := t.OnFailure; o != "" && o != Skip && o != Hold {
		fault("on_failure", "must be skip or hold (got %q)", o)
	}
	for _, p := range t.Events {
		if p == "" || strings.Contains(strings.TrimSuffix(p, "*"), "*") {
			fault("events", `%q is no event type; write "message", "message.*" or "*"`, p)
		}
	}
	t.checkRules(fault)
	for name := range t.Headers {
		if reserved(name) {
			fault("headers", "%s is set by leasehold itself", name)
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// checkCommand finds what is wrong with a command target beside what all have.
func (t Target) checkCommand(fault func(key, format string, args ...any)) {
	if err := child.Check(t.Command); err != nil {
		fault("command", "%v", err)
	}
	for name, value := range t.Env {
		if err := child.CheckVariable(name, value.Reveal(), reservedVariables()...); err != nil {
			fault("env", "%v", err)
		}
	}
}

// address is where a target listens.
type address struct {
	seen   *url.URL // as HTTP sees it
	socket string   // the file to connect to; "" = the host
}

// parseURL says what is wrong with an address without repeating it: it may
// hold a password or a token.
func parseURL(s string) (address, error) {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return address{}, errors.New("is missing; write the address of your program, such as http://localhost:3000/events")
	case err != nil:
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return address{}, fmt.Errorf("is not an address: %w", err)
	case u.Scheme == unixurl.Scheme:
		socket, seen, err := unixurl.Split(u)
		return address{seen, socket}, err
	case u.Scheme != "http" && u.Scheme != "https":
		return address{}, fmt.Errorf("must begin with http:// or https:// (got %q)", u.Scheme)
	case u.Host == "":
		return address{}, errors.New("names no host")
	}
	return address{seen: u}, nil
}

// wants reports whether the target gets events of type typ.
func (t Target) wants(typ string) bool {
	return slices.ContainsFunc(t.Events, func(pattern string) bool {
		if strings.HasPrefix(typ, "system.") && !strings.HasPrefix(pattern, "system.") {
			return false
		}
		family, wild := strings.CutSuffix(pattern, "*")
		return pattern == typ || wild && strings.HasPrefix(typ, family)
	})
}
