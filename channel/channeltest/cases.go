package channeltest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"leasehold/channel"
	"leasehold/engine"
	"leasehold/internal/fault"
)

// cases are what every type promises.
var cases = []suiteCase{
	{name: "what happens on the platform is in the store, once and in order", network: true, run: happyPath},
	{name: "an event comes by itself every interval", run: comesByItself},
	{name: "it is connected at once and says so", always: true, run: connectsAtOnce},
	{name: "a consumer that takes nothing holds up no acknowledgement", network: true, run: slowConsumer},
	{name: "a day without events ends nothing", network: true, run: quietDay},
	{name: "a wrong credential is tried once in five minutes and shown in the platform's words", network: true, run: wrongCredential},
	{name: "a cut between commit and acknowledgement delivers once", network: true, run: cutAfterCommit},
	{name: "a commit whose answer is lost delivers once", network: true, run: answerLost},
	{name: "a crash between commit and acknowledgement delivers once", network: true, run: crashAfterCommit},
	{name: "a store that takes nothing acknowledges nothing, and loses nothing", network: true, run: storeTakesNothing},
	{name: "a restart repeats nothing and loses nothing", always: true, run: restarts},
	{name: "a machine that slept connects anew", always: true, run: wakes},
	{name: "an event of an unknown type is forwarded as it is", network: true, run: unknownType},
	{name: "an oversized event is dropped and holds up nothing", network: true, run: oversized},
	{name: "what is no message ends at most the connection", network: true, run: garbled},
	{name: "a platform that accepts and drops at once is left in peace", network: true, run: acceptsAndDrops},
	{name: "the same identity twice is refused", network: true, named: true, run: identityTwice},
	{name: "a message that is sent again is taken once, where the config says that the platform drops the second", network: true, run: sentAgain},
	{name: "a disabled installation is disconnected", network: true, run: disabled},
}

// soon is how long something may take that has nothing to wait for.
const soon = 5 * time.Second

func happyPath(b *box) {
	before := b.platform.Push(account, 3) // while nobody listened
	b.start()
	b.within(soon, "connected", b.connected)
	ids := append(before, b.platform.Push(account, 500)...)
	b.within(soon, "every event kept and acknowledged", func() bool { return b.delivered(ids...) })
	got := make([]string, 0, len(ids))
	for _, e := range b.kept() {
		got = append(got, e.ID)
		if e.Type == "" || len(e.Raw) == 0 && len(e.Payload) == 0 {
			b.Fatalf("got %+v, want a type and what the platform sent", e)
		}
	}
	if !slices.Equal(got, ids) {
		b.Errorf("got %d events in another order than they happened", len(got))
	}
	if got := b.platform.Live(account); got != 1 {
		b.Errorf("got %d connections, want one", got)
	}
}

func comesByItself(b *box) {
	b.start()
	b.pass(10*b.h.Every + b.h.Every/2)
	ids := map[string]bool{}
	for _, e := range b.kept() {
		ids[e.ID] = true
	}
	if len(ids) < 10 || len(ids) > 11 {
		b.Errorf("got %d events in ten and a half intervals, want 10 or 11", len(ids))
	}
}

func connectsAtOnce(b *box) {
	b.start()
	took := b.within(soon, "connected", b.connected)
	if took > 150*time.Millisecond {
		b.Errorf("got connected after %s, want less than 150ms", took)
	}
}

func slowConsumer(b *box) {
	b.start()
	b.within(soon, "connected", b.connected)
	var ids []string
	for range 60 {
		ids = append(ids, b.platform.Push(account, 1)...)
		b.pass(time.Second)
		if !b.delivered(ids...) {
			b.Fatalf("got %d of %d kept and %q unacknowledged a second after they happened", len(b.kept()), len(ids), b.platform.Unacked(account))
		}
	}
	b.within(soon, "every event kept", func() bool { return b.delivered(ids...) })
}

func quietDay(b *box) {
	b.start()
	b.within(soon, "connected", b.connected)
	b.pass(24 * time.Hour)
	if got := b.platform.Connections(account); got != 1 || !b.connected() {
		b.Errorf("got %d connections and the state %s after a day, want the first one still", got, b.link().State)
	}
	ids := b.platform.Push(account, 1)
	b.within(soon, "an event after a day", func() bool { return b.delivered(ids...) })
}

func wrongCredential(b *box) {
	b.secret = "wrong-" + planted
	b.start()
	b.within(time.Minute, "blocked", func() bool { return b.link().State == engine.Blocked })
	b.pass(5*time.Minute - 2*time.Second - time.Minute)
	if got := b.faults.Dials(); got != 1 {
		b.Errorf("got %d attempts in five minutes, want one", got)
	}
	if l := b.link(); l.Reason != "auth" || !strings.Contains(l.Detail, b.h.Refusal) {
		b.Errorf("got %q (%s), want auth and the platform's words %q", l.Detail, l.Reason, b.h.Refusal)
	}
}

func cutAfterCommit(b *box) {
	b.start()
	b.within(soon, "connected", b.connected)
	b.store.once(func() error { b.faults.Cut(); return nil })
	ids := b.platform.Push(account, 5)
	b.within(time.Minute, "every event kept once and acknowledged", func() bool { return b.delivered(ids...) })
	b.within(time.Minute, "another connection after the cut", func() bool { return b.platform.Connections(account) > 1 })
}

func answerLost(b *box) {
	b.start()
	b.within(soon, "connected", b.connected)
	b.store.once(func() error { return errors.New("the answer is lost") })
	ids := b.platform.Push(account, 5)
	b.within(time.Minute, "every event kept once and acknowledged", func() bool { return b.delivered(ids...) })
}

func crashAfterCommit(b *box) {
	b.start()
	b.within(soon, "connected", b.connected)
	b.store.once(func() error { b.faults.Cut(); b.node.stop(); return nil })
	ids := b.platform.Push(account, 5)
	if err := <-b.node.done; err != nil {
		b.Errorf("the node ended with %v, want nil", err)
	}
	b.node = nil
	if !b.left(5) || len(b.kept()) == 0 {
		b.Errorf("got %q unacknowledged and %d kept, want all five and some", b.platform.Unacked(account), len(b.kept()))
	}
	b.run()
	b.within(time.Minute, "every event kept once and acknowledged", func() bool { return b.delivered(ids...) })
}

func storeTakesNothing(b *box) {
	b.start()
	b.within(soon, "connected", b.connected)
	b.store.refuse(fault.Errorf(fault.Full, "no space left on device"))
	ids := b.platform.Push(account, 10)
	b.pass(10 * time.Minute)
	if !b.left(10) || len(b.kept()) != 0 {
		b.Errorf("got %q unacknowledged and %d kept while the disk is full, want ten and none", b.platform.Unacked(account), len(b.kept()))
	}
	if got := b.faults.Dials(); got > 3 {
		b.Errorf("got %d dials to a platform whose events nobody can keep, want at most 3", got)
	}
	b.store.refuse(nil)
	b.within(2*time.Minute, "every event kept once and acknowledged", func() bool { return b.delivered(ids...) })
}

func restarts(b *box) {
	b.start()
	var ids []string
	for range 10 {
		b.within(soon, "connected", b.connected)
		if b.platform != nil {
			ids = append(ids, b.platform.Push(account, 3)...)
		}
		if took := b.halt(); took >= time.Second {
			b.Errorf("got a stop that took %s, want less than 1s", took)
		}
		b.run()
	}
	if b.platform != nil {
		b.within(soon, "every event kept once and acknowledged", func() bool { return b.delivered(ids...) })
		return
	}
	if got := len(b.kept()); got > 1 {
		b.Errorf("got %d events from ten restarts within an interval, want one", got)
	}
}

func wakes(b *box) {
	b.start()
	b.within(soon, "connected", b.connected)
	b.pass(time.Minute)
	before := b.link().LastReady
	b.node.clock.slept.Add(int64(time.Hour))
	b.within(soon, "connected anew", func() bool { return b.connected() && b.link().LastReady.After(before) })
	if b.platform != nil {
		b.pass(time.Second)
		if got, live := b.platform.Connections(account), b.platform.Live(account); got != 2 || live != 1 {
			b.Errorf("got %d connections, %d of them open, want a second in place of the first", got, live)
		}
	}
}

func unknownType(b *box) {
	b.start()
	b.within(soon, "connected", b.connected)
	id := b.platform.PushOdd(account, UnknownType)
	b.within(soon, "the event kept and acknowledged", func() bool { return b.delivered(id) })
	if e := b.kept()[0]; e.Type == "" || len(e.Raw) == 0 && len(e.Payload) == 0 {
		b.Errorf("got %+v, want it as the platform sent it", e)
	}
}

func oversized(b *box) {
	b.start()
	b.within(soon, "connected", b.connected)
	b.platform.PushOdd(account, Oversized)
	ids := b.platform.Push(account, 2)
	b.within(time.Minute, "the events after it kept, and all acknowledged", func() bool { return b.delivered(ids...) })
}

func garbled(b *box) {
	b.start()
	for range 3 {
		b.within(time.Minute, "connected", b.connected)
		b.platform.Garble(account)
		b.pass(time.Second)
	}
	ids := b.platform.Push(account, 2)
	b.within(5*time.Minute, "the events after it kept and acknowledged", func() bool { return b.delivered(ids...) })
}

func acceptsAndDrops(b *box) {
	b.platform.Drop(account, true)
	b.start()
	b.pass(10 * time.Minute)
	early := b.faults.Dials()
	b.pass(time.Hour)
	late := b.faults.Dials() - early
	// The waits are drawn at random: up to five minutes, they are 24 in an hour, give or
	// take 3; where they end to grow at a minute, 118, give or take 6.
	if early < 5 || early > 30 || late > 60 {
		b.Errorf("got %d dials in ten minutes and %d in the next hour, want the waits to grow", early, late)
	}
	b.platform.Drop(account, false)
	ids := b.platform.Push(account, 2)
	b.within(6*time.Minute, "it comes back", func() bool { return b.delivered(ids...) })
}

func identityTwice(b *box) {
	b.start()
	b.within(soon, "connected", b.connected)
	if err := b.install("twin", account); !fault.Is(err, fault.Conflict) {
		b.Errorf("got %v for a second installation of one account, want a conflict", err)
	}
	if err := b.install("other", "b"); err != nil {
		b.Errorf("got %v for another account, want it taken", err)
	}
	b.within(soon, "the other one connected", func() bool { return b.platform.Live("b") == 1 })
}

func disabled(b *box) {
	b.start()
	b.within(soon, "connected", b.connected)
	row, err := b.db.Installation(b.Context(), installation)
	if err != nil {
		b.Fatal(err)
	}
	row.Enabled = false
	if _, err := b.db.PutInstallation(b.Context(), row, row.Revision); err != nil {
		b.Fatal(err)
	}
	b.node.sup.Trigger()
	b.within(10*time.Second, "disconnected", func() bool { return b.platform.Live(account) == 0 })
}

func sentAgain(b *box) {
	config, err := b.h.Spec.Decode(b.config(account), b.resolve)
	if err != nil {
		b.Fatal(err)
	}
	platform, hears := b.platform.(Hearing)
	if !config.Idempotent() {
		return
	}
	if !hears {
		b.Fatalf("the config says that the platform drops the second of two messages, and the harness's platform does not tell what it has: let it be a Hearing")
	}
	b.start()
	b.within(soon, "connected", b.connected)
	for range 2 {
		m := channel.Message{ID: "out_1", Installation: installation, Op: "send", Conversation: "C1", Text: "hi"}
		if _, err := b.holder.live().Send(b.Context(), m); err != nil {
			b.Errorf("send: got %v, want it taken", err)
		}
	}
	if got := platform.Said(account); !slices.Equal(got, []string{"out_1"}) {
		b.Errorf("got %q on the platform, want the message once", got)
	}
}
