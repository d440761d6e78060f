package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"leasehold/channel/websocket/websocketfake"
)

// servePlatform is the fake platform's process. It writes its address, and a line
// for each connection with the time of its upgrade; it is told in lines, too:
//
//	push BOT N   gives a bot N more events
//	live         answers with the number of connections, and of pings heard
//
// It ends when nobody speaks to it any more.
func servePlatform(ctx context.Context, in io.Reader, out io.Writer) error {
	var mu sync.Mutex // one line at a time
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintf(out, format+"\n", args...) // whoever does not listen any more ends us, too
	}
	var pings int
	fake := websocketfake.New(websocketfake.Options{Step: func(bot, step string) {
		switch step {
		case websocketfake.StepUpgrade:
			say("upgrade %s %d", bot, time.Now().UnixNano())
		case websocketfake.StepPing:
			mu.Lock()
			pings++
			mu.Unlock()
		}
	}})
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the fake platform: %w", err)
	}
	serving := make(chan error, 1)
	go func() { serving <- fake.Serve(l) }()
	say("address ws://%s", l.Addr())
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var bot string
		var n int
		switch text := lines.Text(); {
		case text == "live":
			live := fake.Live("")
			mu.Lock()
			heard := pings
			mu.Unlock()
			say("live %d %d", live, heard)
		case scan(text, "push %s %d", &bot, &n):
			fake.Push(bot, n)
		default:
			fake.Close()
			return errors.Join(fmt.Errorf("the fake platform does not know %q", text), <-serving)
		}
	}
	fake.Close()
	return <-serving
}

func scan(text, format string, into ...any) bool {
	n, err := fmt.Sscanf(text, format, into...)
	return err == nil && n == len(into)
}

// platform is the fake platform in a process of its own, so that neither its
// memory nor its work is the program's.
type platform struct {
	address string
	cmd     *exec.Cmd
	in      io.WriteCloser
	live    chan [2]int   // answers
	ended   chan struct{} // closed when it says nothing any more

	mu       sync.Mutex // guards upgraded
	upgraded map[string][]time.Time
}

// startPlatform starts one. Its stop ends it.
func startPlatform(ctx context.Context) (*platform, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	p := &platform{live: make(chan [2]int, 1), ended: make(chan struct{}), upgraded: map[string][]time.Time{}}
	p.cmd = exec.CommandContext(ctx, self, "-platform")
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the fake platform: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the fake platform: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the fake platform: %w", err)
	}
	lines := bufio.NewScanner(out)
	if lines.Scan() {
		p.address, _ = strings.CutPrefix(lines.Text(), "address ")
	}
	go p.listen(lines)
	if p.address == "" {
		return nil, errors.Join(errors.New("the fake platform did not say where it is"), p.stop())
	}
	return p, nil
}

// listen reads what it says until it ends.
func (p *platform) listen(lines *bufio.Scanner) {
	defer close(p.ended)
	for lines.Scan() {
		var bot string
		var at int64
		var live [2]int
		switch text := lines.Text(); {
		case scan(text, "upgrade %s %d", &bot, &at):
			p.mu.Lock()
			p.upgraded[bot] = append(p.upgraded[bot], time.Unix(0, at))
			p.mu.Unlock()
		case scan(text, "live %d %d", &live[0], &live[1]):
			p.live <- live
		}
	}
}

func (p *platform) stop() error {
	_ = p.in.Close() // that is how it is told
	<-p.ended
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("end the fake platform: %w", err)
	}
	return nil
}

func (p *platform) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		return fmt.Errorf("speak to the fake platform: %w", err)
	}
	return nil
}

// count returns how many connections it has, and the WebSocket pings that it has
// heard so far.
func (p *platform) count() (connections, pings int, err error) {
	if err := p.say("live"); err != nil {
		return 0, 0, err
	}
	select {
	case live := <-p.live:
		return live[0], live[1], nil
	case <-p.ended:
		return 0, 0, errors.New("the fake platform ended by itself")
	}
}

// push gives a bot n more events.
func (p *platform) push(bot string, n int) error { return p.say("push %s %d", bot, n) }

// upgrades returns when a bot's connections were upgraded.
func (p *platform) upgrades(bot string) []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upgraded[bot]
}

// upgradedOnce counts the bots that never needed a second connection.
func (p *platform) upgradedOnce() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.upgraded {
		if len(at) == 1 {
			n++
		}
	}
	return n
}
