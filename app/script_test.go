package app_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"

	"leasehold/admin"
	"leasehold/app"
	"leasehold/channel/websocket/websocketfake"
)

func TestMain(m *testing.M) {
	heedInterrupts()
	testscript.Main(serving{m}, map[string]func(){"leasehold": func() {
		os.Exit(app.Main(context.Background(), app.Options{
			Types: append(app.Builtin(), stubborn(nil)), Args: os.Args[1:], Env: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		}))
	}})
}

// heedInterrupts undoes what a shell does to what it runs in the background: an
// interrupt is ignored there, and by all that is started from there. The end of a
// script is an interrupt to what still runs, which must not miss it while it starts.
func heedInterrupts() {
	if signal.Ignored(os.Interrupt) {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt) // what is caught here is not ignored in what we start
	}
}

// TestScripts drives the binary as a person types. Beside testscript's own words
// the scripts have:
//
//	code N PROGRAM ARG…       run it; it must end with N
//	until TIME REGEXP ARG…    run leasehold until its output matches, within TIME.
//	                          Arguments are globs; @SOCKET in front asks on that socket
//	envsubst FILE…            fill in $PLATFORM, $PROGRAM and $PING
//	gone GLOB                 no file has such a name
//	rest TIME                 let time pass, where time itself is what matters
//	running TIME SOCKET       until a running program answers there, within TIME, asked without starting one
//	signal NAME N             send a signal to the Nth program in the background, if it has not ended
//	platform                  a fake platform at $PLATFORM; with token=T it wants that token
//	push BOT N · cut BOT · acked BOT N
//	press BOT                 a button of a bot's is pressed
//	answered BOT REGEXP       wait until the platform has such an answer to one
//	program [:PORT]           a program that takes webhooks at $PROGRAM
//	answer STATUS             what it answers from now on
//	pinged REGEXP             the last call of $PING, its method, path and body, matches
//	took N                    wait until it has taken N different deliveries
//	knows FILE                from now on it takes only what the key in FILE has signed
//	hidden FILE PATH…         no file under the paths holds the secret that is in FILE; ! hidden: some do
//	certify CERT KEY          make a certificate for the loopback, which is its own authority
//	says FOLDER ARG…          keep what leasehold says, for people and with --json, in a file there
//	answers SOCKET FOLDER     keep what the API answers to everything that can be asked, in files there
//	port                      $PORT is where the program that runs listens
//	retire FILE ARG…          retire the signing key whose id is in FILE
//	signed BOT N              push events until one arrives with N signatures
//	refused N                 so many calls were signed with none that it knew
//	replays N                 wait until it has taken N that were marked as a replay
//	sql FILE STATEMENT        change a database
//	holds TIME FILE REGEXP    until FILE, which somebody writes, matches, within TIME
//	listens TARGET QUERY      an EventSource reads the target's stream from now on
//	heard TARGET N [AGAIN]    wait until it heard N events, each under one id, AGAIN of them more than once
//	finds TEXT PATH…          some file under the paths holds TEXT; ! finds: none does
//
// A TIME is the most that it may take on a machine that does nothing else; a busy one
// is given busy times as long, since each look there is a process of its own.
func TestScripts(t *testing.T) {
	p := params()
	p.Dir = filepath.Join("..", "testdata", "script")
	testscript.Run(t, p)
}

func params() testscript.Params {
	return testscript.Params{
		Setup: func(e *testscript.Env) error {
			repo, err := filepath.Abs("..")
			if err != nil {
				return err
			}
			e.Setenv("REPO", repo)
			w := &world{}
			e.Values[worldKey{}] = w
			e.Defer(w.close)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": cmdCode, "until": cmdUntil, "running": cmdRunning, "rest": cmdRest, "signal": cmdSignal, "platform": cmdPlatform, "push": cmdPush, "press": cmdPress, "answered": cmdAnswered, "cut": cmdCut, "acked": cmdAcked,
			"envsubst": cmdEnvsubst, "gone": cmdGone, "let": cmdLet,
			"program": cmdProgram, "answer": cmdAnswer, "took": cmdTook, "knows": cmdKnows, "refused": cmdRefused, "signed": cmdSigned, "hidden": cmdHidden, "port": cmdPort, "certify": cmdCertify, "says": cmdSays, "answers": cmdAnswers, "retire": cmdRetire, "pinged": cmdPinged, "replays": cmdReplays, "sql": cmdSQL, "finds": cmdFinds, "holds": cmdHolds, "listens": cmdListens, "heard": cmdHeard,
		},
		RequireExplicitExec: true, RequireUniqueNames: true,
	}
}

const (
	busy   = 6           // what a time of a script is multiplied by
	longer = time.Minute // what a condition without a time may take
)

// within reads a time of a script.
func within(ts *testscript.TestScript, text string) time.Duration {
	most, err := time.ParseDuration(text)
	ts.Check(err)
	return busy * most
}

type worldKey struct{}

// world is what stands around the binary in one script.
type world struct {
	platform *websocketfake.Server
	program  *program

	listeners map[string]*listener // by target
}

func of(ts *testscript.TestScript) *world { return ts.Value(worldKey{}).(*world) }

func (w *world) close() {
	if w.platform != nil {
		w.platform.Close()
	}
}

func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program [arg…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("%v: got exit code %d, want %d", args[1:], got, want)
	}
}

func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: until time regexp arg…")
	}
	want, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	for deadline := time.Now().Add(within(ts, args[0])); ; {
		out, err := command(ts, args[2:]...)
		if want.Match(out) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v did not say %s in time; the last time it said (%v):\n%s", args[2:], args[1], err, out)
		}
	}
}

func cmdRest(ts *testscript.TestScript, _ bool, args []string) {
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	time.Sleep(d)
}

func cmdRunning(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: running time socket")
	}
	c := admin.NewClient(admin.Socket(ts.MkAbs(args[1])))
	defer c.Close()
	began := time.Now()
	awaitFor(ts, within(ts, args[0]), func() (string, bool) {
		o, err := c.Status(context.Background())
		return fmt.Sprintf("got mode %q, %v, want running", o.Mode, err), err == nil && o.Mode == admin.Running && o.Node.Session != ""
	})
	ts.Logf("it took %v", time.Since(began))
}

// command runs leasehold without touching what the script looks at.
func command(ts *testscript.TestScript, args ...string) ([]byte, error) {
	c := exec.CommandContext(context.Background(), lookPath(ts, "leasehold"))
	c.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LEASEHOLD_NODE_DATA_DIR"} {
		if v := ts.Getenv(name); v != "" {
			c.Env = append(c.Env, name+"="+v)
		}
	}
	for _, a := range args {
		socket, isSocket := strings.CutPrefix(a, "@")
		if found, err := filepath.Glob(ts.MkAbs(socket)); err == nil && len(found) == 1 && strings.Contains(a, "*") {
			a, socket = found[0], found[0]
		}
		if isSocket {
			c.Env = append(c.Env, "LEASEHOLD_ADMIN_SOCKET="+socket)
			continue
		}
		c.Args = append(c.Args, a)
	}
	return c.CombinedOutput()
}

func lookPath(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path := filepath.Join(dir, name); exists(path) {
			return path
		}
	}
	ts.Fatalf("%s is not in PATH", name)
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func cmdEnvsubst(ts *testscript.TestScript, _ bool, files []string) {
	for _, f := range files {
		text := ts.ReadFile(f)
		for _, name := range []string{"PLATFORM", "PROGRAM", "PING"} {
			text = strings.ReplaceAll(text, "$"+name, ts.Getenv(name))
		}
		ts.Check(os.WriteFile(ts.MkAbs(f), []byte(text), 0o600))
	}
}

func cmdGone(ts *testscript.TestScript, _ bool, args []string) {
	found, err := filepath.Glob(args[0])
	ts.Check(err)
	if len(found) > 0 {
		ts.Fatalf("found %v, want nothing", found)
	}
}

func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "QUIT": syscall.SIGQUIT, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL, "INT": syscall.SIGINT}
	if neg || len(args) != 2 || signals[args[0]] == 0 {
		ts.Fatalf("usage: signal NAME N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	all := ts.BackgroundCmds()
	if n < 1 || n > len(all) {
		ts.Fatalf("there are %d programs in the background", len(all))
	}
	if err := all[n-1].Process.Signal(signals[args[0]]); !errors.Is(err, os.ErrProcessDone) { // its end is what "wait" judges
		ts.Check(err)
	}
}

// await looks until it is so.
func await(ts *testscript.TestScript, so func() (string, bool)) { awaitFor(ts, longer, so) }

// awaitFor looks until it is so, for at most this long, and says what was so last.
func awaitFor(ts *testscript.TestScript, most time.Duration, so func() (string, bool)) {
	for deadline := time.Now().Add(most); ; time.Sleep(10 * time.Millisecond) {
		text, ok := so()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s", text)
		}
	}
}

func cmdSQL(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.ExecContext(context.Background(), args[1])
	ts.Check(errors.Join(err, db.Close()))
}

func cmdHolds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: holds time file regexp")
	}
	want, err := regexp.Compile(args[2])
	ts.Check(err)
	awaitFor(ts, within(ts, args[0]), func() (string, bool) {
		b, err := os.ReadFile(ts.MkAbs(args[1]))
		return fmt.Sprintf("got %q, %v, want %s", b, err, args[2]), want.Match(b)
	})
}

func cmdFinds(ts *testscript.TestScript, neg bool, args []string) {
	var found []string
	files := 0
	for _, root := range args[1:] {
		ts.Check(filepath.WalkDir(ts.MkAbs(root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			files++
			if bytes.Contains(b, []byte(args[0])) {
				found = append(found, path)
			}
			return err
		}))
	}
	if files == 0 {
		ts.Fatalf("there is no file under %v", args[1:])
	}
	if neg == (len(found) > 0) {
		ts.Fatalf("in %d files: found %q in %v", files, args[0], found)
	}
}
