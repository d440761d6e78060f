//go:build unix

package evidence_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"leasehold/delivery"
)

// plant is a box with a broker, a line to it, and a program that takes webhooks.
type plant struct {
	*box
	broker *broker
	line   *line
	taker  *taker
	config func(more string) string // the file, with more keys of the installation
}

// newPlant makes one whose program speaks a version to its broker.
func newPlant(t *testing.T, version, more string) *plant {
	t.Helper()
	p := &plant{box: newBox(t, ""), broker: startBroker(t), taker: &taker{webhooks: map[string]*receipt{}}}
	level := byte(5)
	if version != "5" {
		level = 4
	}
	p.line = newLine(t, p.broker.address, level)
	server := httptest.NewServer(p.taker)
	t.Cleanup(server.Close)
	p.config = func(more string) string {
		return fmt.Sprintf(plantConfig, server.URL, p.line.address(), version, more)
	}
	p.configure(p.config(more))
	return p
}

const plantConfig = `[node]
name = "plant"
data_dir = "data"
[[target]]
name = "app"
type = "http"
events = ["*"]
url = %q
[[installation]]
id = "plant"
type = "mqtt"
[installation.config]
url = "mqtt://%s"
topics = ["plant/#"]
version = "%s"
keep_alive = "2s"
%s
`

// taker is an HTTP server that takes webhooks and keeps a book of them. A few
// it does not take at first.
type taker struct {
	mu       sync.Mutex // guards what follows
	webhooks map[string]*receipt
	repeats  int
	faults   []string
}

type receipt struct {
	message
	body  uint64 // its hash
	taken int
}

func (k *taker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender was killed in the middle of it
	}
	w.WriteHeader(k.take(r.Header.Get("webhook-id"), body))
}

func (k *taker) take(id string, body []byte) int {
	var e struct {
		Data struct {
			Conversation struct{ ID string }
			Device       struct {
				Retain     bool
				Properties struct{ N string }
			}
			Raw json.RawMessage
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := json.Unmarshal(body, &e); err != nil || id == "" || e.Data.Conversation.ID == "" {
		k.faults = append(k.faults, fmt.Sprintf("got a webhook %q that is no envelope: %v: %.200s", id, err, body))
		return http.StatusBadRequest
	}
	hash := fnv.New64a()
	_, _ = hash.Write(body) // it never fails
	m := message{topic: e.Data.Conversation.ID, payload: string(e.Data.Raw), n: e.Data.Device.Properties.N, retain: e.Data.Device.Retain}
	was := k.webhooks[id]
	if was == nil {
		was = &receipt{message: m, body: hash.Sum64()}
		k.webhooks[id] = was
		if rand.N(300) == 0 {
			return http.StatusInternalServerError
		}
	}
	if was.body != hash.Sum64() {
		k.faults = append(k.faults, fmt.Sprintf("%s came with two bodies, want the same bytes", id))
	}
	if was.taken++; was.taken > 1 {
		k.repeats++
	}
	return http.StatusNoContent
}

// took returns how often each message was delivered, under an id of its own.
func (k *taker) took() (count map[message]int, all int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	count = map[message]int{}
	for _, w := range k.webhooks {
		if w.taken > 0 {
			count[w.message]++
			all++
		}
	}
	return count, all
}

func (k *taker) id(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.webhooks[id] != nil && k.webhooks[id].taken > 0
}

// plantMessages makes messages whose topics and payloads are few.
func plantMessages(from, n int) []message {
	all := make([]message, n)
	for i := range all {
		all[i] = message{topic: fmt.Sprintf("plant/%d/temperature", rand.N(plantTopics)), payload: fmt.Sprintf("2%d.5", rand.N(plantValues)), n: fmt.Sprint(from + i)}
	}
	return all
}

// moment is when the program is killed: right after its start, at any time, or with
// a message or an acknowledgement, which is where it hurts; in the end in any case.
func (p *plant) moment() <-chan struct{} {
	done := make(chan struct{})
	late := time.After(lifetime)
	var step <-chan struct{}
	switch rand.N(5) {
	case 0:
		late = time.After(rand.N(80 * time.Millisecond))
	case 1:
		late = time.After(rand.N(1200 * time.Millisecond))
	case 2:
		step = p.line.nth(mqttPublish, 1+rand.N(perBrokerLife))
	default:
		step = p.line.nth(mqttPuback, 1+rand.N(perBrokerLife))
	}
	go func() {
		defer close(done)
		select {
		case <-late:
		case <-step:
		}
	}()
	return done
}

// strike does something to the broker at some moment of a round, each in its turn.
func (p *plant) strike(round int) {
	pause(p.T, rand.N(800*time.Millisecond))
	switch round % 4 {
	case 0:
		p.broker.kill(syscall.SIGKILL)
		p.broker.run()
	case 1:
		p.broker.signal(syscall.SIGSTOP)
		pause(p.T, rand.N(2*time.Second))
		p.broker.signal(syscall.SIGCONT)
	case 2:
		p.broker.kill(syscall.SIGTERM)
		p.broker.run()
	}
}

// unsaid are the messages that the broker never sent: it is 5 that tells them apart.
func (p *plant) unsaid(messages []message) (missing []message) {
	said := map[string]bool{}
	for _, s := range p.line.spoken() {
		said[s.n] = true
	}
	if p.line.version != 5 {
		return nil
	}
	for _, m := range messages {
		if !said[m.n] {
			missing = append(missing, m)
		}
	}
	return missing
}

// settled waits until everything that was said is acknowledged, nothing more comes,
// and all is delivered.
func (p *plant) settled(run *process) {
	p.Helper()
	p.state(run, "connected")
	await(p.T, 2*time.Minute, func() (string, bool) {
		run.alive()
		unacked, quiet := p.line.unanswered()
		_, took := p.taker.took()
		said := p.line.spoken()
		return fmt.Sprintf("%d messages are not acknowledged, %d said, %d delivered; the line is quiet for %v\n%s", unacked, len(said), took, quiet, run.tail()),
			unacked == 0 && quiet > 500*time.Millisecond && took >= len(p.stored())
	})
}

func (p *plant) stored() map[string]row { return rows(p.T, p.database()) }

// judge holds the books against each other: what the broker was told to forget is
// stored once and delivered, and nothing besides what it said.
func (p *plant) judge(published []message) {
	p.Helper()
	stored := p.stored()
	took, all := p.taker.took()
	want(p.T, "deliveries, against events stored", all, len(stored))
	for id, r := range stored {
		if r.state != delivery.Delivered || !p.taker.id(r.webhook) {
			p.Errorf("%s: got %v, taken %v, want it delivered", id, r.state, p.taker.id(r.webhook))
		}
	}
	said, acked := map[message]int{}, map[message]int{}
	for _, s := range p.line.spoken() {
		said[s.message]++
		if s.acked {
			acked[s.message]++
		}
	}
	wrong := 0
	for m, n := range said {
		if got := took[m]; got < acked[m] || got > n {
			if wrong++; wrong <= 5 {
				p.Errorf("%+v: got %d events, and the broker said it %d times, %d of them acknowledged", m, got, n, acked[m])
			}
		}
	}
	want(p.T, "messages with fewer events than acknowledgements, or more than the broker said", wrong, 0)
	for m, n := range took {
		if said[m] == 0 {
			p.Errorf("%+v: got %d events of what the broker never said", m, n)
		}
	}
	if p.line.version == 5 {
		for _, m := range published {
			if took[m] == 0 {
				p.Errorf("%+v was published and is not stored", m)
			}
		}
	}
	for m, n := range took {
		if m.retain {
			want(p.T, "events of the retained message on "+m.topic, n, 1)
		}
	}
	for _, f := range p.taker.faults {
		p.Error(f)
	}
}

// state waits until the status says a word of the installation.
func (p *plant) state(run *process, words ...string) {
	p.Helper()
	await(p.T, longest, func() (string, bool) {
		run.alive()
		out, _ := p.tell("status")
		for _, w := range words {
			if !strings.Contains(out, w) {
				return fmt.Sprintf("the status says nothing of %q:\n%s\n%s", w, out, run.tail()), false
			}
		}
		return "", true
	})
}
