//go:build unix

package evidence_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"leasehold/internal/freeport"
	"leasehold/internal/need"
)

// broker is Mosquitto as Debian ships it, in a process of its own, with its sessions
// on disk.
type broker struct {
	t       *testing.T
	dir     string
	address string

	mu  sync.Mutex // guards cmd: the test's goroutine and the one that kills it share it
	cmd *exec.Cmd
}

// startBroker runs one. It writes its disk anew after every change: what it forgets
// in a kill all the same is its own affair, which the book of a line shows.
func startBroker(t *testing.T) *broker {
	t.Helper()
	need.Tool(t, "mosquitto", "mosquitto")
	port := strconv.Itoa(freeport.Of(t))
	b := &broker{t: t, dir: t.TempDir(), address: net.JoinHostPort("127.0.0.1", port)}
	conf := []string{
		"listener " + port + " 127.0.0.1", "allow_anonymous true", "max_queued_messages 0", "log_dest none",
		"persistence true", "persistence_location " + b.dir + "/", "autosave_on_changes true", "autosave_interval 1",
	}
	if os.Geteuid() == 0 {
		conf = append(conf, "user root") // else it gives up the right to read its own files
	}
	must(t, os.WriteFile(filepath.Join(b.dir, "mosquitto.conf"), []byte(strings.Join(conf, "\n")+"\n"), 0o600))
	b.run()
	t.Cleanup(func() { b.kill(syscall.SIGKILL) })
	return b
}

// run starts the broker and waits until it listens.
func (b *broker) run() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cmd = exec.CommandContext(context.WithoutCancel(b.t.Context()), "mosquitto", "-c", filepath.Join(b.dir, "mosquitto.conf"))
	must(b.t, b.cmd.Start())
	await(b.t, longest, func() (string, bool) {
		c, err := new(net.Dialer).DialContext(b.t.Context(), "tcp", b.address)
		if err == nil {
			_ = c.Close()
		}
		return fmt.Sprintf("mosquitto does not listen: %v", err), err == nil
	})
}

func (b *broker) signal(s syscall.Signal) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		b.t.Error(err)
	}
}

// kill ends the broker.
func (b *broker) kill(s syscall.Signal) {
	b.t.Helper()
	b.signal(syscall.SIGCONT)
	b.signal(s)
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.cmd.Wait() // its status is that of the signal
}

// publisher is a device that speaks: it publishes until the broker has acknowledged,
// over as many connections as that takes.
type publisher struct {
	t      *testing.T
	broker string
	again  int // messages that were published once more
}

// atOnce is how many messages are on their way to the broker.
const atOnce = 20

// publish publishes messages, each with its n as a user property.
func (p *publisher) publish(messages []message) {
	for left := messages; len(left) > 0; {
		client := p.connect()
		if client == nil {
			return // the test is over
		}
		var mu sync.Mutex
		var missed []message
		work := make(chan message)
		var all sync.WaitGroup
		for range atOnce {
			all.Go(func() {
				for m := range work {
					if err := p.one(client, m); err != nil {
						mu.Lock()
						missed = append(missed, m)
						mu.Unlock()
					}
				}
			})
		}
		for _, m := range left {
			work <- m
		}
		close(work)
		all.Wait()
		_ = client.Disconnect(&paho.Disconnect{})
		p.again += len(missed)
		left = missed
	}
}

func (p *publisher) one(client *paho.Client, m message) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.t.Context()), 5*time.Second)
	defer cancel()
	go func() { // an answer that was lost with its connection is waited for until ctx ends
		select {
		case <-client.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	_, err := client.Publish(ctx, &paho.Publish{
		QoS: 1, Topic: m.topic, Payload: []byte(m.payload), Retain: m.retain, Properties: &paho.PublishProperties{User: paho.UserProperties{{Key: "n", Value: m.n}}},
	})
	return err
}

// connect tries until the broker takes it; nil when the test ends before.
func (p *publisher) connect() *paho.Client {
	for p.t.Context().Err() == nil {
		if client, err := dialBroker(p.t.Context(), p.broker, "publisher", nil); err == nil {
			return client
		}
		pause(p.t, 20*time.Millisecond)
	}
	return nil
}

// dialBroker connects somebody else's client, 5, to a broker. lost is called when the
// connection ends, unless it is nil.
func dialBroker(ctx context.Context, address, id string, lost func()) (*paho.Client, error) {
	ctx = context.WithoutCancel(ctx)
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	told := func() {
		if lost != nil {
			lost()
		}
	}
	client := paho.NewClient(paho.ClientConfig{
		Conn: c, OnClientError: func(error) { told() }, OnServerDisconnect: func(*paho.Disconnect) { told() },
	})
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := client.Connect(limited, &paho.Connect{ClientID: id, KeepAlive: 30, CleanStart: true}); err != nil {
		_ = c.Close()
		return nil, err
	}
	return client, nil
}
