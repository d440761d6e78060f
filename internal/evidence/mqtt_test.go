//go:build unix

package evidence_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"
)

const (
	// brokerKillsEnv is how often the process is killed, and each time a blow falls on
	// the broker; "make soak" says 25.
	brokerKillsEnv = "LEASEHOLD_BROKER_KILLS"
	// brokerKills take about a quarter of a minute; racedBrokerKills, with the race
	// detector in the program, too.
	brokerKills, racedBrokerKills = 5, 3
	// perBrokerLife is what is published between two kills: 5,000 messages in 25.
	perBrokerLife = 200
	// topics and values: so few that most messages are equal to others.
	plantTopics, plantValues = 5, 4
	retainedTopics           = 3
)

func TestBrokerKilled(t *testing.T) {
	t.Parallel() // it waits, mostly
	t.Run("what the broker has an acknowledgement for is stored once and delivered, however often both are killed", func(t *testing.T) {
		for _, version := range []string{"5", "3.1.1"} {
			t.Run(version, func(t *testing.T) {
				t.Parallel()
				brokerKilled(t, version)
			})
		}
	})
}

func brokerKilled(t *testing.T, version string) {
	kills := brokerKills
	if raced {
		kills = racedBrokerKills
	}
	if text := os.Getenv(brokerKillsEnv); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		kills = n
	}
	p := newPlant(t, version, "")
	device := &publisher{t: t, broker: p.broker.address}
	var retained []message
	for n := range retainedTopics {
		retained = append(retained, message{topic: fmt.Sprintf("plant/state/%d", n), payload: fmt.Sprint(n), n: fmt.Sprint("r", n), retain: true})
	}
	device.publish(retained)

	// A session that begins is what keeps messages for us: it must be there before the
	// first of them.
	first := p.start()
	await(t, longest, func() (string, bool) {
		_, got := p.taker.took()
		return fmt.Sprintf("got %d retained messages, want %d\n%s", got, len(retained), first.tail()), got == len(retained)
	})
	first.kill()

	began := time.Now()
	var messages []message
	for round := range kills {
		batch := plantMessages(len(messages), perBrokerLife)
		messages = append(messages, batch...)
		// A minute of connection forgets the deaths before it, which else add up to waits
		// of minutes; a changed key does so, too.
		p.configure(p.config(fmt.Sprintf("session_expiry = \"%dh\"", 24+round)))
		run := p.start()
		var others sync.WaitGroup
		others.Go(func() { device.publish(batch) })
		others.Go(func() { p.strike(round) })
		await(t, time.Minute, over(p.moment()))
		run.kill()
		others.Wait()
	}
	struck := time.Since(began)
	p.configure(p.config(""))
	last := p.start()
	p.settled(last)
	lost := 0
	for missing := p.unsaid(messages); len(missing) > 0; missing = p.unsaid(messages) {
		lost += len(missing)
		device.publish(missing) // the broker had said that it has them, and lost them in a kill
		p.settled(last)
	}
	drained := time.Since(began) - struck
	last.stop()
	p.judge(append(retained, messages...))

	said, different := p.line.spoken(), map[message]int{}
	for _, s := range said {
		different[s.message]++
	}
	t.Logf("%d messages of %d different contents, %d kills in %v, the rest delivered in %v", len(messages), plantTopics*plantValues, kills, struck.Round(time.Millisecond), drained.Round(time.Millisecond))
	t.Logf("broker: said %d messages and repeated %d; published once more: %d that it had not acknowledged, %d that it lost; with n, %d are different",
		len(said), p.line.repeats, device.again, lost, len(different))
	_, took := p.taker.took()
	t.Logf("program: %d connections; webhooks: %d taken, %d of them twice", p.line.dialled(time.Time{}), took, p.taker.repeats)
}

// over adapts a channel to await.
func over(done <-chan struct{}) func() (string, bool) {
	return func() (string, bool) {
		select {
		case <-done:
			return "", true
		default:
			return "the moment does not come", false
		}
	}
}

func TestBrokerStandsStill(t *testing.T) {
	t.Parallel() // it waits, mostly
	t.Run("a broker that stands still is given up within twice keep_alive, and taken again when it moves", func(t *testing.T) {
		p := newPlant(t, "5", "")
		run := p.start()
		p.state(run, "connected")
		const keepAlive = 2 * time.Second
		p.broker.signal(syscall.SIGSTOP)
		began := time.Now()
		await(t, time.Minute, func() (string, bool) {
			return "nothing is noticed:\n" + run.tail(), strings.Contains(run.said(), `"disconnected"`)
		})
		took := time.Since(began)
		if said := run.said(); !strings.Contains(said, "silent") {
			t.Errorf("got\n%s\nwant the reason silent", said)
		}
		if busy := 8 * time.Second; took > 2*keepAlive+busy { // and what a busy machine takes
			t.Errorf("got it noticed after %v, want at most %v", took, 2*keepAlive)
		}
		t.Logf("noticed after %v; the bound is %v", took.Round(10*time.Millisecond), 2*keepAlive)
		p.broker.signal(syscall.SIGCONT)
		p.state(run, "connected")
		run.stop()
	})
}

func TestAnotherConsumer(t *testing.T) {
	t.Parallel() // it waits, mostly
	t.Run("a second client with our id is shown as another consumer, and no storm of dials follows", func(t *testing.T) {
		p := newPlant(t, "5", `client_id = "one-and-only"`)
		run := p.start()
		p.state(run, "connected")
		began := time.Now()
		rival := newRival(t, p.broker.address, "one-and-only")
		p.state(run, "superseded", "another consumer")
		shown := time.Since(began)
		tries := p.line.dialled(began)
		since := time.Now()
		pause(t, unhurried)
		if dials := p.line.dialled(since); dials > 2 {
			t.Errorf("got %d dials in %v, want 2 at most", dials, unhurried)
		}
		if tries > 8 {
			t.Errorf("got %d dials until it was noticed, want a few", tries)
		}
		t.Logf("shown after %v and %d dials; in the %v after that: %d dials, %d of the other client", shown.Round(time.Millisecond), tries, unhurried, p.line.dialled(since), rival.count())
		run.stop()
	})
}

// rival is a second client with one client id, which comes back whenever it is thrown
// out.
type rival struct {
	mu    sync.Mutex // guards dials
	dials int
}

func newRival(t *testing.T, address, id string) *rival {
	t.Helper()
	r := &rival{}
	var all sync.WaitGroup
	all.Go(func() {
		for t.Context().Err() == nil {
			gone := make(chan struct{}, 2)
			client, err := dialBroker(t.Context(), address, id, func() { gone <- struct{}{} })
			if err != nil {
				pause(t, 100*time.Millisecond)
				continue
			}
			r.mu.Lock()
			r.dials++
			r.mu.Unlock()
			select {
			case <-gone:
				pause(t, 300*time.Millisecond)
			case <-t.Context().Done():
			}
			_ = client.Disconnect(&paho.Disconnect{})
		}
	})
	t.Cleanup(all.Wait)
	return r
}

func (r *rival) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dials
}
