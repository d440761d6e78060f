package exec_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/exec"
	"leasehold/channel/exec/execfake"
)

// A real process cannot live in simulated time, and its pipes do not break in the
// ways in which a network does. So here the program is at the far end of a
// connection, which is its standard input and output: what the suite does to the
// network happens to the streams.
func TestSuite(t *testing.T) {
	t.Parallel()
	w := &wire{}
	channeltest.Run(t, channeltest.Harness{
		Spec:      exec.SpecOver(w.launch),
		Steps:     execfake.Steps(),
		Refusal:   execfake.Refusal,
		Anonymous: true,
		Start: func(ln net.Listener, token string, step func(string)) channeltest.Platform {
			p := &fake{wire: w, listener: ln, conns: map[net.Conn]bool{}}
			p.Server = execfake.New(execfake.Options{
				Token: func(string) string { return token },
				Step:  func(_, name string) { step(name) },
			})
			p.runs.Go(p.serve)
			return p
		},
	})
}

// wire starts programs at the far end of connections. What a process has beside
// its streams goes past the connection.
type wire struct{ ends sync.Map } // exit statuses of runs, by their number

type preamble struct {
	Run string            `json:"run"`
	Env map[string]string `json:"env"`
}

func (w *wire) launch(link *channel.Link, command, env []string) (*exec.Launched, error) {
	conn, err := link.DialContext(context.Background(), "tcp", command[1])
	if err != nil {
		return nil, channel.Failed("start", err)
	}
	p := preamble{Run: fmt.Sprintf("%p", conn), Env: map[string]string{}}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		p.Env[name] = value
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(b, '\n')); err != nil {
		return nil, channel.Failed("start", err)
	}
	end := make(chan exec.Ended, 2)
	kill := func() {
		_ = conn.Close()
		select {
		case end <- exec.EndedWith(-1, "signal: killed"):
		default: // it has ended
		}
	}
	out := &output{Conn: conn, broke: kill, ended: func() {
		if status, ok := w.ends.LoadAndDelete(p.Run); ok {
			end <- exec.EndedWith(status.(int), fmt.Sprint("exit status ", status))
		}
	}}
	return &exec.Launched{Stdin: input{conn}, Stdout: out, Stderr: io.NopCloser(strings.NewReader("")), Terminate: func() {}, Kill: kill, Ended: end}, nil
}

// input is a program's standard input: closing it leaves the output open.
type input struct{ io.Writer }

func (input) Close() error { return nil }

// output is a program's standard output. Its end is the program's, if that has
// ended; a connection that breaks is a program that was killed.
type output struct {
	net.Conn
	ended func()
	broke func()
}

func (o *output) Read(b []byte) (int, error) {
	n, err := o.Conn.Read(b)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		o.ended()
	default:
		o.broke()
	}
	return n, err
}

// fake is the platform in the suite's hands, and the machine on which its programs
// run.
type fake struct {
	*execfake.Server
	wire     *wire
	listener net.Listener
	runs     sync.WaitGroup

	mu     sync.Mutex // guards what follows
	conns  map[net.Conn]bool
	closed bool
}

func (f *fake) serve() {
	for {
		c, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.conns[c] = true
		closed := f.closed
		f.mu.Unlock()
		if closed {
			_ = c.Close()
			return
		}
		f.runs.Go(func() { f.run(c) })
	}
}

// run is a process from its start to its exit status.
func (f *fake) run(c net.Conn) {
	in := bufio.NewReader(c)
	first, err := in.ReadBytes('\n')
	var p preamble
	if err == nil && json.Unmarshal(first, &p) == nil {
		status := f.Run(execfake.Process{In: in, Out: c, Env: func(name string) string { return p.Env[name] }})
		f.wire.ends.Store(p.Run, status)
	}
	f.mu.Lock()
	delete(f.conns, c)
	f.mu.Unlock()
	_ = c.Close()
}

func (f *fake) Config(address, account string, quick bool) json.RawMessage {
	b, err := json.Marshal(map[string]any{
		"command": []string{"fake", address}, "env": map[string]any{"TOKEN": map[string]string{"env": "TOKEN"}},
		"config": map[string]any{"account": account, "quick": quick},
	})
	if err != nil {
		panic(err)
	}
	return b
}

func (f *fake) PushOdd(account string, what channeltest.Oddity) string {
	body := map[string]any{"id": "unknown-1", "type": "brand_new", "raw": map[string]any{"what": []any{nil}}}
	if what == channeltest.Oversized {
		body = map[string]any{"id": "huge-1", "text": strings.Repeat("x", 3<<20)}
	}
	f.PushLine(account, body["id"].(string), map[string]any{"event": body})
	return body["id"].(string)
}

func (f *fake) Garble(account string) { f.PushLine(account, "", "\x00\xff{{{ no message") }

func (f *fake) Close() {
	_ = f.listener.Close()
	f.mu.Lock()
	f.closed = true
	for c := range f.conns {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.runs.Wait()
}
