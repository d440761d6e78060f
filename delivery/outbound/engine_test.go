package outbound_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/channel/mqtt"
	"leasehold/channel/mqtt/mqttfake"
	"leasehold/delivery/outbound"
	"leasehold/engine"
	"leasehold/internal/eventid"
	"leasehold/store/sqlite"
)

// holder is a mailer as the whole of an engine's holder: events go nowhere.
type holder struct{ *outbound.Mailer }

func (holder) Targets(channel.Term, *channel.Event) []string { return nil }
func (holder) Accepted(channel.Term, int64)                  {}
func (holder) Ask(context.Context, channel.Term, channel.Event) (json.RawMessage, bool) {
	return nil, false
}

// box is a node with a broker: the real engine, store and channel type.
type box struct {
	*testing.T
	broker *mqttfake.Server
	db     *sqlite.Store
	mailer *outbound.Mailer
	sup    *engine.Supervisor
}

func newBox(t *testing.T) *box {
	b := &box{T: t, broker: mqttfake.New(mqttfake.Options{})}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	b.must(err)
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := b.broker.Serve(l); err != nil {
			t.Error(err)
		}
	})
	b.db, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "leasehold.db"), sqlite.Options{ReserveBytes: -1})
	b.must(err)
	types, err := channel.NewTypes(func(string, string) (string, error) { return "", errors.New("no secrets here") }, mqtt.Spec)
	b.must(err)
	row := admin.Installation{ID: "plant", Type: "mqtt", Enabled: true, Source: admin.SourceFile, Config: b.broker.Config("mqtt://"+l.Addr().String(), "plant", nil)}
	b.must(admin.Seal(types, []byte("key"), &row))
	_, err = b.db.PutInstallation(t.Context(), row, 0)
	b.must(err)
	b.mailer = outbound.New(b.db, outbound.Options{})
	b.sup, err = engine.New(b.db, types, holder{b.mailer}, engine.Options{Instance: "box", Host: "box"})
	b.must(err)
	sending, stopSending := context.WithCancel(context.WithoutCancel(t.Context()))
	holding, stopHolding := context.WithCancel(context.WithoutCancel(t.Context()))
	var mailing, supervising sync.WaitGroup
	mailing.Go(func() { _ = b.mailer.Run(sending) })
	supervising.Go(func() {
		if err := b.sup.Run(holding); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stopHolding()
		supervising.Wait()
		stopSending()
		mailing.Wait()
		b.broker.Close()
		parts.Wait()
		b.must(b.db.Close())
	})
	b.await("connected", b.connected)
	return b
}

func (b *box) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *box) connected() bool {
	links := b.sup.Status().Links
	return len(links) == 1 && links[0].State == engine.Connected
}

func (b *box) await(what string, so func() bool) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("got no %s within 20 s, want it", what)
		}
	}
}

// post posts a message to a topic and returns its id.
func (b *box) post(topic, text string) string {
	b.Helper()
	m, err := b.db.PutMessage(b.Context(), outbound.Message{
		Message:   channel.Message{ID: eventid.NewMessage(time.Now()), Installation: "plant", Op: "send", Conversation: topic, Text: text},
		ExpiresIn: time.Minute,
	})
	b.must(err)
	b.mailer.Wake(m.Lease)
	return m.ID
}

// becomes waits until a message is in a state, and returns it.
func (b *box) becomes(id, state string) (m admin.Message) {
	b.Helper()
	b.await(id+" "+state, func() (so bool) {
		var err error
		m, err = b.db.Message(b.Context(), id)
		b.must(err)
		return m.State == state
	})
	return m
}

func (b *box) payloads() (all []string) {
	for _, m := range b.broker.Received() {
		all = append(all, string(m.Payload))
	}
	return all
}

func TestUnderTheEngine(t *testing.T) {
	t.Parallel()
	t.Run("what is posted is published, each topic's in order and once", func(t *testing.T) {
		t.Parallel()
		b := newBox(t)
		var ids []string
		for n := range 40 {
			ids = append(ids, b.post(fmt.Sprint("lamps/", n%4), fmt.Sprint(n)))
		}
		for _, id := range ids {
			b.becomes(id, "sent")
		}
		got := map[string][]string{}
		for _, m := range b.broker.Received() {
			got[m.Topic] = append(got[m.Topic], string(m.Payload))
		}
		for n := range 4 {
			var want []string
			for i := n; i < 40; i += 4 {
				want = append(want, fmt.Sprint(i))
			}
			if topic := fmt.Sprint("lamps/", n); !slices.Equal(got[topic], want) {
				t.Errorf("%s: got %v, want %v", topic, got[topic], want)
			}
		}
	})

	t.Run("what the broker refuses is refused in its words, and the next one goes", func(t *testing.T) {
		t.Parallel()
		b := newBox(t)
		refused := b.becomes(b.post("lamps/#", "on"), "refused")
		if refused.LastError == "" || refused.Attempts != 1 {
			t.Errorf("got %+v, want its words after one attempt", refused)
		}
		b.becomes(b.post("lamps/1", "on"), "sent")
	})

	t.Run("what was on its way when the connection broke is unknown; what waited goes over the next one", func(t *testing.T) {
		t.Parallel()
		b := newBox(t)
		b.broker.Behave("plant", mqttfake.Behaviour{NoPuback: true})
		b.broker.Cut("plant")
		b.await("the next connection", func() bool { return !b.connected() })
		b.await("connected", b.connected)
		first := b.post("lamps/1", "first")
		b.await("the first at the broker", func() bool {
			all := b.broker.Connections("plant")
			return all[len(all)-1].Unanswered == 1
		})
		second := b.post("lamps/1", "second")
		b.broker.Behave("plant", mqttfake.Behaviour{})
		b.broker.Cut("plant")
		b.becomes(first, "unknown")
		b.becomes(second, "sent")
		if got := b.payloads(); !slices.Equal(got, []string{"second"}) {
			t.Errorf("got %v answered, want the second alone", got)
		}
	})
}
