//go:build linux

package evidence_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"leasehold/channel/channeltest"
	"leasehold/internal/fault"
)

// clusterNode is one process of a cluster, with a folder and a way to the database of
// its own, and what restarts it when it ends.
type clusterNode struct {
	*box
	name  string
	proxy *channeltest.Proxy
	p     *process
	asked bool   // to end, or killed
	pause []span // in which it stood still

	restart time.Time // not before this; zero: nothing is decided yet
}

// span is a while; a zero to has not come yet.
type span struct{ from, to time.Time }

func nodeName(n int) string { return fmt.Sprintf("node%d", n) }

// restartAfter is what a service manager waits for.
const restartAfter = 200 * time.Millisecond

// up starts it, and tells whoever it connects to who it is.
func (n *clusterNode) up() {
	n.Helper()
	n.p, n.asked, n.restart = n.start(), false, time.Time{}
}

// tend starts it again when it has ended. Only a database that does not answer, or
// does not let it finish, is a reason to end by itself, or late.
func (n *clusterNode) tend(now time.Time) {
	n.Helper()
	if !n.p.over() {
		return
	}
	if n.restart.IsZero() {
		n.restart = now.Add(restartAfter)
		if code := n.p.cmd.ProcessState.ExitCode(); code != fault.ExitTemporary && !n.asked {
			n.Errorf("%s ended by itself with %d, want it only with %d\n%s", n.name, code, fault.ExitTemporary, n.p.tail())
		}
	}
	if !now.Before(n.restart) {
		n.up()
	}
}

// kill is SIGKILL, and no restart before the time is over.
func (n *clusterNode) kill(lasts time.Duration) {
	n.end(syscall.SIGKILL, lasts)
	<-n.p.ended
}

// end sends a signal that ends it, and starts it again when the time is over and it
// has ended.
func (n *clusterNode) end(s syscall.Signal, lasts time.Duration) {
	n.Helper()
	n.p.signal(s)
	n.asked, n.restart = true, time.Now().Add(lasts)
}

// term is SIGTERM.
func (n *clusterNode) term(lasts time.Duration) { n.end(syscall.SIGTERM, lasts) }

func (n *clusterNode) freeze() {
	n.pause = append(n.pause, span{from: time.Now()})
	n.p.signal(syscall.SIGSTOP)
}

func (n *clusterNode) thaw() {
	n.pause[len(n.pause)-1].to = time.Now()
	n.p.signal(syscall.SIGCONT)
}

// stood adds what its processes say of themselves: a machine with other things to do
// makes one stand still, too.
func (n *clusterNode) stood(t testing.TB) {
	t.Helper()
	for life := 1; life <= n.lives; life++ {
		for _, line := range logLines(t, fmt.Sprintf("%s/%d", n.logs, life)) {
			if line.Msg == "the process stood still" {
				n.pause = append(n.pause, span{from: line.Time.Add(-time.Duration(line.For)), to: line.Time})
			}
		}
	}
}

// logLine is what of the program's log is looked at.
type logLine struct {
	Time time.Time
	Msg  string
	For  int64
}

// stands returns the while in which it stood still at an instant, if it did.
func (n *clusterNode) stands(at time.Time) (span, bool) {
	for _, s := range n.pause {
		if s.from.Before(at) && at.Before(s.to) {
			return s, true
		}
	}
	return span{}, false
}

// conf is the config of a node. All have one name: it stands in every webhook, and one
// that another node repeats has to have the same bytes.
func (n *clusterNode) conf(drain time.Duration, store, target, rest string) {
	n.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "[node]\nname = \"evidence\"\ndata_dir = \"data\"\ndrain_timeout = %q\n[store]\nurl = %q\n", drain, store)
	fmt.Fprintf(&b, "[[target]]\nname = \"app\"\ntype = \"http\"\nevents = [\"*\"]\nurl = %q\n", target)
	n.configure(b.String() + rest)
}

// token is what a node shows to the platform.
func token(node string) string { return "token-of-" + node }
