package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"leasehold/internal/loop"
)

// mosquitto is a broker as Debian ships it, in a process of its own.
type mosquitto struct {
	cmd     *exec.Cmd
	address string
}

// startMosquitto starts one that keeps nothing on disk. Its stop ends it.
func (b *bench) startMosquitto(ctx context.Context) (*mosquitto, error) {
	path, err := exec.LookPath("mosquitto")
	if err != nil {
		return nil, fmt.Errorf("find a broker: %w; install the package mosquitto", err)
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a port for a broker: %w", err)
	}
	address := ln.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	if err := ln.Close(); err != nil {
		return nil, fmt.Errorf("find a port for a broker: %w", err)
	}
	conf := filepath.Join(b.dir, "mosquitto-"+port+".conf")
	text := strings.Join([]string{"listener " + port + " 127.0.0.1", "allow_anonymous true", "max_queued_messages 0", "log_dest none", ""}, "\n")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write the config of a broker: %w", err)
	}
	m := &mosquitto{exec.CommandContext(ctx, path, "-c", conf), address}
	if os.Geteuid() == 0 {
		if err := os.WriteFile(conf, []byte(text+"user root\n"), 0o600); err != nil { // else it may not read its config
			return nil, fmt.Errorf("write the config of a broker: %w", err)
		}
	}
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a broker: %w", err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return m, c.Close()
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("reach a broker: %w", err), m.stop())
		}
		if err := loop.Sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, errors.Join(err, m.stop())
		}
	}
}

func (m *mosquitto) pid() int { return m.cmd.Process.Pid }

func (m *mosquitto) stop() error {
	_ = m.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself, which Wait tells
	if err := m.cmd.Wait(); err != nil {
		return fmt.Errorf("end a broker: %w", err)
	}
	return nil
}

// client is somebody else's client, connected.
func (m *mosquitto) client(id string, change func(*paho.ClientOptions)) (paho.Client, error) {
	o := paho.NewClientOptions().AddBroker("tcp://" + m.address).SetClientID(id).SetAutoReconnect(false).SetProtocolVersion(4)
	if change != nil {
		change(o)
	}
	c := paho.NewClient(o)
	return c, done(c.Connect())
}

// done waits for what a client was asked.
func done(t paho.Token) error {
	if !t.WaitTimeout(time.Minute) {
		return errors.New("a broker does not answer within a minute")
	}
	return t.Error()
}

// withBroker runs f once a node has all its connections to a broker.
func (b *bench) withBroker(ctx context.Context, s setup, f func(*node) error) (err error) {
	dir, err := b.prepare(s)
	if err != nil {
		return err
	}
	n, err := b.start(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.stop()) }()
	within := time.Minute + time.Duration(s.bots)*100*time.Millisecond
	err = n.await(ctx, fmt.Sprintf("%d connections", s.bots), within, func() (bool, error) {
		live, err := b.connections(ctx, dir)
		return live == s.bots, err
	})
	if err != nil {
		return err
	}
	return f(n)
}

// connections asks a node how many it has; 0 while it does not answer yet.
func (b *bench) connections(ctx context.Context, dir string) (int, error) {
	var o struct {
		Totals struct {
			Links map[string]int `json:"links"`
		} `json:"totals"`
	}
	out, err := exec.CommandContext(ctx, b.binary, "status", "--json", "--config", filepath.Join(dir, "leasehold.toml")).Output()
	if _, ran := errors.AsType[*exec.ExitError](err); err != nil && !ran {
		return 0, fmt.Errorf("ask a node for its status: %w", err)
	}
	_ = json.Unmarshal(out, &o) // it says nothing yet
	return o.Totals.Links["connected"], nil
}
