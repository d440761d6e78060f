package channel

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"time"
)

// Definition is what a channel type whose config is C supplies. Define makes a
// Spec of it.
//
// C is a struct of exported fields with json tags. Further tags: `doc` is the
// key's sentence; `default` shows its default; `channel` is a comma list of
// `required` (a build without it is Rejected) and `connection` (the field belongs
// to the connection: only such fields enter the fingerprint, whose change
// rebuilds it). Credentials are of type Secret, headers and the like of type
// Text, durations of type Duration.
type Definition[C any] struct {
	Name    string // the word in the config: lower case, no spaces
	Summary string // one sentence
	Can     Capabilities
	Hosts   []string      // host:port a firewall must allow; empty when the config names them
	Deaf    time.Duration // a half-open connection is noticed within this; 0 = there is none to notice
	Budget  int           // what the platform allows per 24 h, counted by Link.Spend; 0 = no limit
	Offline bool          // it makes no connection, so the limit on dials is not for it
	Limits  Limits        // how fast the platform lets one installation send; what depends on the config says a Limited
	Writes  Writing       // what the platform reads; what depends on the config says a Writer
	Default func() C      // the config before the file's keys; nil = the zero C
	// FileOnly: only the config file may define an installation of the type. It runs
	// what its config says with the rights of this program, and nobody shall get
	// those over an API.
	FileOnly bool
	// Prepare is called once in a program that runs installations, before any of them
	// is claimed, with a folder for the type alone, which it makes if it needs it. It
	// ends what an earlier process has left running on this machine. An error keeps
	// the program from starting. nil = there is nothing to prepare.
	Prepare func(ctx context.Context, dir string, log *slog.Logger) error

	// New builds the channel. It makes no connection. An error is the config's
	// fault and is shown to people: name the key and the fix.
	New func(ctx context.Context, c C) (Channel, error)
	// Identity names who the config is on the platform; two installations with one
	// identity are refused, because platforms split or kick. nil or "" = none known.
	Identity func(c C) string
	// Idempotent reports whether the platform of c drops the second of two messages with
	// one Message.ID; nil = Can says it for all.
	Idempotent func(c C) bool
	// Able reports what of Can an installation of c has; nil = all of it. It is asked
	// without the secrets behind c's references.
	Able func(c C) Capabilities
}

// Capabilities says what a type can do beside hearing.
type Capabilities struct {
	Send, Edit, Delete, React, Typing, Threads, Ephemeral, Attachments, History, Native, Call bool

	// Idempotent: the platform drops the second of two messages with one
	// Message.ID, so a Send whose outcome is unknown is made again. A type for which
	// that depends on the config says so in Definition.Idempotent.
	Idempotent bool
}

// Spec is a channel type as the rest of the program sees it.
type Spec struct {
	Name    string
	Summary string
	Can     Capabilities
	Hosts   []string
	Deaf    time.Duration
	Budget  int
	Offline bool
	Limits  Limits
	Writes  Writing
	// FileOnly and Prepare are the definition's.
	FileOnly bool
	Prepare  func(ctx context.Context, dir string, log *slog.Logger) error
	// Config is the type of the config struct, from which schema, documentation
	// and the file's check come.
	Config reflect.Type

	fresh    func() any
	build    func(ctx context.Context, c any) (Channel, error)
	identity func(c any) string
	repeats  func(c any) bool
	able     func(c any) Capabilities
}

// Define makes a Spec. It panics when the definition has no name or no New:
// a mistake that the first run of the program shows.
func Define[C any](d Definition[C]) Spec {
	if d.Name == "" || d.New == nil {
		panic("channel: a definition needs a name and New")
	}
	return Spec{
		Name: d.Name, Summary: d.Summary, Can: d.Can, Hosts: d.Hosts, Deaf: d.Deaf, Budget: d.Budget, Offline: d.Offline, Limits: d.Limits, Writes: d.Writes, Config: reflect.TypeFor[C](),
		FileOnly: d.FileOnly, Prepare: d.Prepare,
		fresh: func() any {
			c := new(C)
			if d.Default != nil {
				*c = d.Default()
			}
			return c
		},
		build: func(ctx context.Context, c any) (Channel, error) { return d.New(ctx, *c.(*C)) },
		identity: func(c any) string {
			if d.Identity == nil {
				return ""
			}
			return d.Identity(*c.(*C))
		},
		repeats: func(c any) bool { return d.Can.Idempotent || d.Idempotent != nil && d.Idempotent(*c.(*C)) },
		able: func(c any) Capabilities {
			if d.Able == nil {
				return d.Can
			}
			return d.Able(*c.(*C))
		},
	}
}

// Resolver returns the value behind a secret reference, such as
// {"env": "X"}: kind is env, file, credential or secret.
type Resolver func(kind, name string) (string, error)

// Config is a decoded, resolved config of one installation.
type Config struct {
	spec  Spec
	value any // *C
}

// Decode reads an installation's config as stored: the type's keys, secrets by
// reference. Unknown keys, wrong types and references that do not resolve are
// errors; none of them carries a secret.
func (s Spec) Decode(raw json.RawMessage, resolve Resolver) (Config, error) {
	if s.fresh == nil {
		return Config{}, fmt.Errorf("channel type %q was not made by channel.Define", s.Name)
	}
	resolved, err := resolveTree(s.Config, raw, resolve)
	if err != nil {
		return Config{}, err
	}
	c := s.fresh()
	if err := decodeStrict(resolved, c); err != nil {
		return Config{}, err
	}
	if err := requireFields(reflect.ValueOf(c).Elem(), ""); err != nil {
		return Config{}, err
	}
	return Config{spec: s, value: c}, nil
}

// Able is what an installation with this config, as stored, can: its type's Can or
// less. It resolves no reference, so it may be asked anywhere and at any time; of a
// config that cannot be read it is Can.
func (s Spec) Able(raw json.RawMessage) Capabilities {
	c, err := s.Decode(raw, func(_, name string) (string, error) { return name, nil })
	if err != nil {
		return s.Can
	}
	return s.able(c.value)
}

// Build makes the channel. It makes no connection.
func (c Config) Build(ctx context.Context) (Channel, error) { return c.spec.build(ctx, c.value) }

// Identity names who the config is on the platform; "" = not known before it connects.
func (c Config) Identity() string { return c.spec.identity(c.value) }

// Idempotent reports whether the platform drops the second of two messages with one
// Message.ID, so that one whose answer was lost may be sent again.
func (c Config) Idempotent() bool { return c.spec.repeats(c.value) }

// Fingerprint is a keyed hash over the fields that belong to the connection,
// secrets included: it changes when, and only when, the connection must be
// rebuilt. The key keeps a short password from being guessed from the store.
func (c Config) Fingerprint(key []byte) string {
	return fingerprint(key, c.spec.Name, reflect.ValueOf(c.value).Elem())
}

// Value returns a pointer to the decoded config struct.
func (c Config) Value() any { return c.value }

// Types are the channel types that a program knows, with what resolves their
// secrets.
type Types struct {
	specs   map[string]Spec
	names   []string
	resolve Resolver
}

// NewTypes makes a registry. Two specs of one name are an error.
func NewTypes(resolve Resolver, specs ...Spec) (*Types, error) {
	t := &Types{specs: map[string]Spec{}, resolve: resolve}
	for _, s := range specs {
		if _, ok := t.specs[s.Name]; ok {
			return nil, fmt.Errorf("channel type %q is defined twice", s.Name)
		}
		t.specs[s.Name] = s
		t.names = append(t.names, s.Name)
	}
	return t, nil
}

// Names lists the known types in the order they were given.
func (t *Types) Names() []string { return t.names }

// Lookup returns the spec of a type.
func (t *Types) Lookup(name string) (Spec, bool) {
	s, ok := t.specs[name]
	return s, ok
}

// Decode reads a config of the named type.
func (t *Types) Decode(name string, raw json.RawMessage) (Config, error) {
	s, ok := t.specs[name]
	if !ok {
		return Config{}, fmt.Errorf("channel type %q is not known; run leasehold types list", name)
	}
	return s.Decode(raw, t.resolve)
}
