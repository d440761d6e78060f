package channeltest

import (
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

// Token is the secret of a Stage: what Resolve knows as TOKEN. A test fails when the
// channel shows it to anybody but its platform.
const Token = "planted-token-1234567890"

// Fake is a type's fake platform, as a Stage needs it.
type Fake interface {
	// Serve serves until Close.
	Serve(l net.Listener) error
	// Close ends the connections and returns when their goroutines have ended.
	Close()
	// Violations are what a bot's client did that the platform forbids.
	Violations(bot string) []string
}

// Stage is what the tests of one channel type play on: its fake platform on a network
// in memory, and the store of one installation, the bot. It belongs inside a synctest
// bubble.
type Stage struct {
	T      *testing.T
	Net    *Net
	Memory *Memory
	Config map[string]any // of the installation; a test changes it before Start

	spec channel.Spec
	fake Fake
	bot  string
}

// NewStage serves the fake at address, host:port. config is the installation's, as the
// fake writes it.
func NewStage(t *testing.T, spec channel.Spec, fake Fake, address, bot string, config json.RawMessage) *Stage {
	t.Helper()
	s := &Stage{T: t, Net: NewNet(), Memory: NewMemory(), spec: spec, fake: fake, bot: bot}
	ln, err := s.Net.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = fake.Serve(ln) }() // it ends with Close
	if err := json.Unmarshal(config, &s.Config); err != nil {
		t.Fatal(err)
	}
	return s
}

// Close ends the platform; a goroutine that is left then fails the test.
func (s *Stage) Close() {
	s.Net.Resume()
	s.fake.Close()
}

// Ref is the config's reference to Token.
func Ref() map[string]string { return map[string]string{"env": "TOKEN"} }

// Resolve is a channel.Resolver that knows TOKEN alone.
func Resolve(_, name string) (string, error) {
	if name == "TOKEN" {
		return Token, nil
	}
	return "", errors.New("not set")
}

// Build makes a channel of a config, as the engine does.
func Build(spec channel.Spec, config map[string]any) (channel.Channel, error) {
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	c, err := spec.Decode(raw, Resolve)
	if err != nil {
		return nil, err
	}
	return c.Build(nil) //nolint:staticcheck // it makes no connection and looks at no context
}

// Channel builds the channel of the stage's config.
func (s *Stage) Channel() channel.Channel {
	s.T.Helper()
	ch, err := Build(s.spec, s.Config)
	if err != nil {
		s.T.Fatal(err)
	}
	return ch
}

// Start runs one term of ch.
func (s *Stage) Start(ch channel.Channel) *Bench {
	s.T.Helper()
	b := NewBench(s.Net.DialContext, s.Memory)
	b.Start(s.T.Context(), ch)
	return b
}

// Connect runs one term of ch and waits until it is ready and quiet.
func (s *Stage) Connect(ch channel.Channel) *Bench {
	s.T.Helper()
	b := s.Start(ch)
	synctest.Wait()
	if len(b.Readies()) != 1 {
		b.Kill()
		s.T.Fatalf("got %d readies and %v, want one", len(b.Readies()), b.Wait())
	}
	return b
}

// WantExit waits for the term's own end and checks how it is classified.
func (s *Stage) WantExit(b *Bench, class channel.Class, code string) channel.Exit {
	s.T.Helper()
	err := b.Wait()
	if err == nil {
		s.T.Fatalf("got no error, want %s %q", class, code)
	}
	got := channel.Classify(err)
	if got.Class != class || got.Code != code {
		s.T.Errorf("got %s %q (%v), want %s %q", got.Class, got.Code, err, class, code)
	}
	s.NoSecret(b)
	return got
}

// Stop ends the term politely and wants it to go at once.
func (s *Stage) Stop(b *Bench, cause error) {
	s.T.Helper()
	start := time.Now()
	if err := b.Stop(cause); err != nil {
		s.T.Errorf("stop: got %v, want nil", err)
	}
	if took := time.Since(start); took >= time.Second {
		s.T.Errorf("stop: took %s, want less than 1s", took)
	}
	synctest.Wait() // the platform books the end
	s.NoSecret(b)
}

// NoSecret fails when the channel has said Token.
func (s *Stage) NoSecret(b *Bench) {
	s.T.Helper()
	if said := b.Said(); strings.Contains(said, Token) {
		s.T.Errorf("the secret left the channel: %s", said)
	}
}

// NoViolations fails when the platform complains of the bot.
func (s *Stage) NoViolations() {
	s.T.Helper()
	if v := s.fake.Violations(s.bot); len(v) > 0 {
		s.T.Errorf("the platform complains: %q", v)
	}
}

// Kept lists the ids in the store.
func (s *Stage) Kept() []string {
	ids := []string{}
	for _, e := range s.Memory.Events() {
		ids = append(ids, e.ID)
	}
	return ids
}
