//go:build unix

package exec_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"leasehold/channel/exec/execfake"
)

// role makes the test's own binary one of the programs below.
const role = "EXEC_TEST_ROLE"

func TestMain(m *testing.M) {
	if name := os.Getenv(role); name != "" {
		play, ok := programs[name]
		if !ok {
			fmt.Fprintln(os.Stderr, "there is no program", name)
			os.Exit(1)
		}
		os.Exit(play(newPuppet()))
	}
	os.Exit(m.Run())
}

// puppet is what the programs are made of.
type puppet struct {
	in     *bufio.Scanner
	config map[string]string
	cursor string
}

func newPuppet() *puppet {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 4<<20)
	return &puppet{in: in}
}

// heard is one of our lines, by its kind.
type heard map[string]struct {
	ID     string            `json:"id"`
	Op     string            `json:"op"`
	Text   string            `json:"text"`
	Reason string            `json:"reason"`
	Config map[string]string `json:"config"`
	Params map[string]string `json:"params"`
	Cursor string            `json:"cursor"`
}

// hear returns the next line; nil is the end.
func (p *puppet) hear() heard {
	if !p.in.Scan() {
		return nil
	}
	var h heard
	if err := json.Unmarshal(p.in.Bytes(), &h); err != nil {
		fmt.Fprintln(os.Stderr, "not understood:", p.in.Text(), err)
	}
	return h
}

// start hears start and says hello and ready.
func (p *puppet) start() *puppet {
	p.begin()
	p.say(`{"hello":{"protocol":1,"name":"puppet","version":"1","can":["send"` + p.config["can"] + `]` + p.config["hello"] + `}}`)
	p.say(`{"ready":{}}`)
	return p
}

func (p *puppet) begin() {
	h := p.hear()
	p.config, p.cursor = h["start"].Config, h["start"].Cursor
	if path := p.config["runs"]; path != "" {
		note(path, fmt.Sprint(os.Getpid()))
	}
}

func (p *puppet) say(line string) { fmt.Println(line) }

func (p *puppet) event(id string) { p.say(`{"event":{"id":"` + id + `","text":"` + id + `"}}`) }

// serve answers pings until stop or the end, and gives every other line to f.
func (p *puppet) serve(f func(heard)) int {
	for h := p.hear(); h != nil; h = p.hear() {
		if _, ok := h["ping"]; ok {
			p.say(`{"pong":{}}`)
		} else if _, ok := h["stop"]; ok {
			return 0
		} else if f != nil {
			f(h)
		}
	}
	return 0
}

// note appends a line to a file.
func note(path, line string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
		_ = f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// offspring runs the sleeper beside us, with the streams that we have.
func offspring(sys *syscall.SysProcAttr) {
	self, _ := os.Executable()
	c := exec.Command(self) //nolint:noctx // it is to outlive us
	c.Env = append(os.Environ(), role+"=sleep")
	c.Stdout, c.Stderr, c.SysProcAttr = os.Stdout, os.Stderr, sys
	if err := c.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Fprintln(os.Stderr, "offspring", c.Process.Pid)
}

func sleep(*puppet) int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	time.Sleep(time.Hour)
	return 0
}

var programs = map[string]func(*puppet) int{
	"sleep": sleep,
	// A well-behaved program with a platform that has some events.
	"fake": func(*puppet) int {
		s := execfake.New(execfake.Options{})
		s.Push("", 5)
		return s.Run(execfake.Self())
	},
	// It tells what it was given.
	"tells": func(p *puppet) int {
		p.start()
		names := []string{}
		for _, v := range os.Environ() {
			name, _, _ := strings.Cut(v, "=")
			names = append(names, name)
		}
		b, _ := json.Marshal(map[string]any{"event": map[string]any{"id": "1", "raw": map[string]any{
			"names": names, "argv": os.Args, "color": os.Getenv("COLOR"), "installation": os.Getenv("LEASEHOLD_INSTALLATION"), "config": p.config, "cursor": p.cursor,
		}}})
		p.say(string(b))
		return p.serve(nil)
	},
	// It says its secret everywhere.
	"blabs": func(p *puppet) int {
		secret := os.Getenv("TOKEN")
		fmt.Fprintln(os.Stderr, "connecting with", secret)
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 1990), secret)
		p.begin()
		p.say("banner of " + secret)
		p.say(`{"hello":{"protocol":1,"name":"` + secret + `"}}`)
		p.say(`{"log":{"level":"warn","text":"token ` + secret + `"}}`)
		p.say(`{"` + secret + `":{}}`)
		p.say(`{"status":{"state":"` + secret + `","text":"refused ` + secret + `"}}`)
		p.say(`{"ready":{"identity":"` + secret + `"}}`)
		p.say(`{"event":{"id":"1","time":"` + secret + `"}}`)
		return 77
	},
	"exits": func(p *puppet) int {
		p.begin()
		for line := range strings.SplitSeq(p.config["say"], "\n") {
			p.say(line)
		}
		if words := p.config["stderr"]; words != "" {
			fmt.Fprintln(os.Stderr, words)
		}
		var status int
		_, _ = fmt.Sscan(p.config["status"], &status)
		return status
	},
	"signals itself": func(p *puppet) int {
		p.start()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		return sleep(p)
	},
	// Three events, of which the first has the cursor, and the end.
	"crashes": func(p *puppet) int {
		p.start()
		for _, id := range []string{"a", "b", "c"} {
			p.event(id)
		}
		return 1
	},
	"half a line": func(p *puppet) int {
		p.start()
		p.event("whole")
		fmt.Print(`{"event":{"id":"half","text":"this line does not end"}}`)
		return 0
	},
	"long line": func(p *puppet) int {
		p.start()
		p.event("before")
		p.say(`{"event":{"id":"long","text":"` + strings.Repeat("x", 2<<20) + `"}}`)
		p.say(`{"event":{"id":"largest","text":"` + strings.Repeat("x", 1<<20-len(`{"event":{"id":"largest","text":""}}`)) + `"}}`)
		p.event("after")
		return p.serve(nil)
	},
	"garbage": func(p *puppet) int {
		for _, line := range []string{"Welcome!", "", "\x00\xff\xfe", "[]", "null", `{"a":1,"b":2}`, `{"unheard":{}}`, strings.Repeat("{", 5000), `{"hello":7}`} {
			if line == `{"hello":7}` && os.Getenv("BAD_HELLO") == "" {
				continue
			}
			p.say(line)
		}
		p.start()
		for _, line := range []string{
			`{"ready":5}`, `{"event":{"id":"odd","time":"tomorrow"}}`, `{"event":5}`, `{"event":null}`, `{"send_result":[]}`, `{"status":{"retry_after":"soon"}}`, `{"log":{"level":"loud","text":"x"}}`,
			`{"event":{"id":"sound","text":"caf` + "\xe9" + `"}}`,
		} {
			p.say(line)
		}
		return p.serve(nil)
	},
	"only garbage": func(p *puppet) int {
		for {
			p.say("Sun 12:00:01 INFO started")
			time.Sleep(10 * time.Millisecond)
		}
	},
	"no hello": sleep,
	"no ready": func(p *puppet) int {
		p.begin()
		p.say(`{"hello":{"protocol":1}}`)
		return p.serve(nil)
	},
	"ready at last": func(p *puppet) int {
		p.begin()
		p.say(`{"hello":{"protocol":1}}`)
		for range 40 {
			p.say(`{"status":{"state":"waiting","text":"scan the code"}}`)
			time.Sleep(100 * time.Millisecond)
		}
		p.say(`{"ready":{"identity":"bot"}}`)
		return p.serve(nil)
	},
	"mute":  func(p *puppet) int { return sleep(p.start()) },
	"quiet": func(p *puppet) int { return p.start().serve(nil) },
	"event first": func(p *puppet) int {
		p.begin()
		p.event("1")
		return p.serve(nil)
	},
	"a markup of its own": func(p *puppet) int {
		p.begin()
		p.say(`{"hello":{"protocol":1,"writes":{"markup":"bbcode"}}}`)
		return p.serve(nil)
	},
	"another protocol": func(p *puppet) int {
		p.begin()
		p.say(`{"hello":{"protocol":2}}`)
		return p.serve(nil)
	},
	"closes stdout": func(p *puppet) int {
		p.start()
		_ = os.Stdout.Close()
		return sleep(p)
	},
	"closes stdin": func(p *puppet) int {
		p.start()
		_ = os.Stdin.Close()
		for n := 0; ; n++ {
			p.event(fmt.Sprint(n))
			time.Sleep(5 * time.Millisecond)
		}
	},
	"stubborn": func(p *puppet) int { return sleep(p.start()) },
	"goes when asked twice": func(p *puppet) int {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		p.start()
		<-signals
		p.event("last words")
		return 0
	},
	"forks": func(p *puppet) int {
		offspring(nil)
		return p.start().serve(nil)
	},
	"leaves its session": func(p *puppet) int {
		offspring(&syscall.SysProcAttr{Setsid: true})
		return p.start().serve(nil)
	},
	"abandons": func(p *puppet) int { // and its offspring holds its output open
		offspring(&syscall.SysProcAttr{Setsid: true})
		p.start()
		p.event("1")
		return 3
	},
	"floods": func(p *puppet) int {
		p.start()
		w := bufio.NewWriterSize(os.Stdout, 4096)
		for n := range 10_000 { // several times what the buffers on its way hold
			_, _ = fmt.Fprintf(w, `{"event":{"id":"%d","text":"%0200d"}}`+"\n", n, n)
			if n%100 == 0 {
				_ = w.Flush()
				_ = os.WriteFile(p.config["progress"], []byte(fmt.Sprint(n)), 0o600)
			}
		}
		_ = w.Flush()
		return p.serve(nil)
	},
	"floods the log": func(p *puppet) int {
		p.start()
		for n := range 20_000 {
			fmt.Fprintln(os.Stderr, "line", n)
		}
		p.event("done")
		return p.serve(nil)
	},
	"speaks after stop": func(p *puppet) int {
		p.start()
		p.event("before")
		p.serve(nil)
		p.event("after")
		p.say(`{"cursor":"the end"}`)
		for h := p.hear(); h != nil; h = p.hear() {
			if h["ack"].ID == "after" {
				return 0
			}
		}
		return 1
	},
	"sends": func(p *puppet) int {
		return p.start().serve(func(h heard) {
			if c, ok := h["call"]; ok {
				p.say(`{"call_result":{"id":"` + c.ID + `",` + c.Params["text"] + `}}`)
			}
			m, ok := h["send"]
			if !ok {
				return
			}
			switch m.Text {
			case "die":
				os.Exit(9)
			case "never":
				p.event("has read " + m.ID)
			case "twice":
				p.say(`{"send_result":{"id":"` + m.ID + `","message_id":"first"}}`)
				p.say(`{"send_result":{"id":"` + m.ID + `","message_id":"second"}}`)
			case "":
				p.say(`{"send_result":{"id":"` + m.ID + `","message_id":"m1","raw":{"ok":true}}}`)
			default:
				p.say(`{"send_result":{"id":"` + m.ID + `",` + m.Text + `}}`)
			}
		})
	},
	"reads nothing": func(p *puppet) int {
		p.start()
		time.Sleep(time.Hour)
		return 0
	},
	// It is us: it runs a program as a channel, and says who belongs to it.
	"node": node,
}
