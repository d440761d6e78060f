package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"
)

// fake is a type's fake platform.
type fake struct {
	name   string // the type's
	scheme string // of its address
	// open makes one that nobody can reach yet. It calls tell, from any goroutine,
	// for what happens to fakeBot.
	open func(tell func(what, id, text string)) platform
}

// platform is a fake platform as the command drives it.
type platform interface {
	Serve(ln net.Listener) error // until Close
	Close()
	// Config is the type's configuration for a bot, such as a person would write it.
	Config(address, bot string, token map[string]string) json.RawMessage
	// say makes a message happen to fakeBot.
	say(id, text string)
}

// What happens on a fake platform, beside events.
const (
	fakeConnected    = "connected"
	fakeDisconnected = "disconnected"
	fakeAcknowledged = "acknowledged" // an event, or everything up to it
	fakeMessageIn    = "message"      // one that fakeBot sent
	fakeOperation    = "operation"    // what it did to one, such as an edit
)

const (
	fakeBot = "demo"
	// longestLine is how many bytes a typed message may have, as an event of the
	// generic types may by default.
	longestLine = 1 << 20
)

func (p *program) fakeCommand() *cobra.Command {
	f := &fakeRun{program: p}
	var names []string
	for _, x := range fakes() {
		names = append(names, x.name)
	}
	c := &cobra.Command{
		Use: "fake TYPE", Short: "Open a fake platform, to try a type without an account",
		Long: `Open a fake platform of a channel type on loopback, print the installation that
connects to it, and make events happen: at an interval, from the first connection
on, and one for each line that is typed. There are: ` + strings.Join(names, ", ") + ".",
		Args: exactly("TYPE"), ValidArgs: names,
		Example: "  leasehold fake websocket\n  leasehold fake sse --listen 127.0.0.1:8080 --every 0    only what is typed",
		RunE: func(c *cobra.Command, args []string) error {
			i := slices.IndexFunc(fakes(), func(x fake) bool { return x.name == args[0] })
			switch {
			case i < 0:
				return usage("there is no fake platform %q; there are: %s", args[0], strings.Join(names, ", "))
			case f.every < 0:
				return usage("--every: must not be negative (got %s); 0 is only what is typed", f.every)
			}
			f.fake = fakes()[i]
			return f.run(c.Context())
		},
	}
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "the `address` to listen on; port 0 is a free one")
	c.Flags().DurationVar(&f.every, "every", 2*time.Second, "the time between two events; 0 is only what is typed")
	return c
}

// fakeRun is one run of a fake platform.
type fakeRun struct {
	*program
	fake
	listen string
	every  time.Duration

	began chan struct{} // closed with the first connection
	once  sync.Once

	mu sync.Mutex // guards the output
}

// run runs until ctx ends.
func (f *fakeRun) run(ctx context.Context) (err error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fmt.Errorf("listen for the fake platform: %w; choose another address with --listen", err)
	}
	f.began = make(chan struct{})
	x := f.open(f.tell)
	if err := f.introduce(x, ln.Addr()); err != nil {
		return errors.Join(err, ln.Close())
	}
	serving := start(ctx, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, x.Close)()
		return x.Serve(ln)
	})
	defer closing(&err, serving.stop)
	return f.happen(ctx, x, serving)
}

// introduce prints where the platform is, and the installation that connects to it.
func (f *fakeRun) introduce(x platform, at net.Addr) error {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return fmt.Errorf("address of the fake platform: %w", err)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	address := f.scheme + "://" + net.JoinHostPort(host, port)
	raw := x.Config(address, fakeBot, nil)
	if f.json {
		return f.record(map[string]any{"what": "listening", "type": f.name, "address": address, "config": raw})
	}
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		return fmt.Errorf("config of the fake platform: %w", err)
	}
	installation := map[string]any{"id": "fake-" + f.name, "type": f.name, "config": config}
	b, err := toml.Marshal(map[string]any{"installation": []any{installation}})
	if err != nil {
		return fmt.Errorf("write the installation: %w", err)
	}
	f.line("A fake %s platform listens on %s until you press Ctrl-C.", f.name, address)
	f.line("To see its events, in another terminal:\n\n  %s\n", f.command(config))
	f.line("Or, for leasehold.toml:\n\n%s", b)
	return nil
}

// command is the line that runs leasehold against the platform, to be pasted into a
// shell.
func (f *fakeRun) command(config map[string]any) string {
	words := []string{shellWord(os.Args[0]) + " run " + f.name}
	for _, key := range slices.Sorted(maps.Keys(config)) {
		text, ok := config[key].(string)
		if !ok {
			b, err := json.Marshal(config[key])
			if err != nil {
				panic(err) // it came from JSON
			}
			text = string(b)
		}
		words = append(words, "--set "+shellWord(key+"="+text))
	}
	return strings.Join(words, " \\\n    ")
}

// happen makes events happen until ctx or the platform ends.
func (f *fakeRun) happen(ctx context.Context, x platform, serving *background) error {
	typed := f.typed(ctx)
	run := strconv.FormatInt(time.Now().UnixMilli(), 36) // an event of another run is another event
	var tick <-chan time.Time
	var n, byItself int
	say := func(text string) {
		n++
		id := run + "-" + strconv.Itoa(n)
		f.note("event", id, text)
		x.say(id, text)
	}
	began := f.began
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-serving.ended:
			return errors.New("the fake platform ended by itself")
		case <-began:
			began = nil
			if f.every > 0 {
				ticker := time.NewTicker(f.every)
				defer ticker.Stop()
				tick = ticker.C
			}
		case <-tick:
			byItself++
			say(fmt.Sprintf("hello, this is message %d", byItself))
		case line, open := <-typed:
			if !open {
				typed = nil
				continue
			}
			say(line)
		}
	}
}

// typed hands over the lines of stdin. The goroutine that reads them is not waited
// for: nothing ends a read of a terminal but a key, or the end of the process.
func (f *fakeRun) typed(ctx context.Context) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(f.Stdin)
		s.Buffer(nil, longestLine)
		for s.Scan() {
			if line := strings.TrimSpace(s.Text()); line != "" {
				select {
				case lines <- line:
				case <-ctx.Done():
					return
				}
			}
		}
		if err := s.Err(); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			f.hint("leasehold: nothing more is read from stdin: %v", err)
		}
	}()
	return lines
}

// tell notes what happens on the platform.
func (f *fakeRun) tell(what, id, text string) {
	f.note(what, id, text)
	if what == fakeConnected {
		f.once.Do(func() { close(f.began) })
	}
}

// note prints what happened.
func (f *fakeRun) note(what, id, text string) {
	now := time.Now().UTC()
	if f.json {
		record := map[string]any{"time": now.Format(time.RFC3339Nano), "what": what}
		for key, value := range map[string]string{"id": id, "text": text} {
			if value != "" {
				record[key] = value
			}
		}
		_ = f.record(record) // strings
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if text != "" {
		text = strconv.Quote(text)
	}
	f.line("%s", strings.TrimRight(fmt.Sprintf("%s  %-13s %s  %s", now.Format("15:04:05.000"), what, id, text), " "))
}

// record prints one line of JSON.
func (f *fakeRun) record(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.line("%s", b)
	return nil
}
