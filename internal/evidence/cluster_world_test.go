//go:build linux

package evidence_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the tables are read without our own code

	"leasehold/channel/channeltest"
	"leasehold/channel/websocket/websocketfake"
	"leasehold/store/postgres/pgtest"
)

// cluster is some processes on one Postgres, each behind a proxy of its own, between
// one platform and one program.
type cluster struct {
	*testing.T
	server   *pgtest.Server
	url      string // of the database, past the proxies
	nodes    []*clusterNode
	platform *websocketfake.Server
	program  *program
	target   string // the program's URL
	bots     []string
	pushed   int

	installations string // as TOML
}

// clusterGhost is how long a connection that has ended may seem open: its end and its
// successor race through the same two processors.
const clusterGhost = time.Second

// newCluster makes one that nothing runs of yet, and nothing is configured of.
func newCluster(t *testing.T, server *pgtest.Server, nodes, bots int) *cluster {
	t.Helper()
	c := &cluster{T: t, server: server, url: server.Database(t), program: newProgram()}
	target := httptest.NewServer(c.program)
	t.Cleanup(target.Close)
	c.target = target.URL
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	c.platform = websocketfake.New(websocketfake.Options{Grace: clusterGhost})
	served := make(chan error, 1)
	go func() { served <- c.platform.Serve(l) }()
	t.Cleanup(func() {
		c.platform.Close()
		if err := <-served; err != nil {
			t.Errorf("the platform: %v", err)
		}
	})
	installations := strings.Builder{}
	for n := range bots {
		bot := fmt.Sprintf("bot%04d", n)
		c.bots = append(c.bots, bot)
		fmt.Fprintf(&installations, installation+clusterToken, bot, l.Addr(), bot)
	}
	for n := range nodes {
		proxy, err := channeltest.NewProxy(t.Context(), server.Addr())
		must(t, err)
		t.Cleanup(proxy.Close)
		node := &clusterNode{box: newBox(t, ""), name: nodeName(n), proxy: proxy}
		node.env = []string{"NODE=" + token(node.name)}
		c.nodes = append(c.nodes, node)
	}
	c.installations = installations.String()
	return c
}

// clusterToken tells the platform which node has connected.
const clusterToken = `headers = { Authorization = "Bearer {{token}}" }
secrets = { token = { env = "NODE" } }
`

// through is the URL of the cluster's database at one or more addresses.
func (c *cluster) through(addresses ...string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", pgtest.Role, strings.Join(addresses, ","), c.name())
}

// name is that of the cluster's database.
func (c *cluster) name() string {
	u, err := url.Parse(c.url)
	must(c.T, err)
	return strings.TrimPrefix(u.Path, "/")
}

// startAll starts the nodes one after the other, the first of which brings the
// installations, and waits until every bot is connected.
func (c *cluster) startAll() {
	c.Helper()
	for _, n := range c.nodes {
		n.up()
		n.p.saying(`"msg":"ready"`)
	}
	c.heal()
}

// acked counts what the platform was told to forget.
func (c *cluster) acked() (n int) {
	for _, bot := range c.bots {
		n += c.platform.AckedCount(bot)
	}
	return n
}

func (c *cluster) connections() (n int) {
	for _, bot := range c.bots {
		n += len(c.platform.Connections(bot))
	}
	return n
}

// arrived waits until all that was said was acknowledged and taken.
func (c *cluster) arrived(patience time.Duration) {
	c.Helper()
	defer func() {
		if c.Failed() {
			c.kept() // says what was lost
		}
	}()
	await(c.T, patience, func() (string, bool) {
		acked, taken := c.acked(), c.program.taken()
		return fmt.Sprintf("got %d acknowledged and %d taken, want %d", acked, taken, c.pushed), acked == c.pushed && taken == c.pushed
	})
}

// kept checks that all that was acknowledged is stored, once.
func (c *cluster) kept() map[string]row {
	c.Helper()
	stored := rowsAt(c.T, "pgx", c.url)
	for _, bot := range c.bots {
		allStored(c.T, bot, c.platform.Acked(bot), stored)
	}
	return stored
}

// exclusive checks that no bot had two live connections beside each other, but where
// the older one's process stood still, and then for no longer than it takes to wake
// up; and that what it said after its successor had come was said in that instant.
func (c *cluster) exclusive() {
	c.Helper()
	byName := map[string]*clusterNode{}
	for _, n := range c.nodes {
		n.stood(c.T)
		byName[token(n.name)] = n
	}
	silentWithin, measured := awakeAtMost, os.Getenv(clusterEnv) != "" // a machine with other things to do may be slow, the platform on it, too
	if measured {
		silentWithin = awakeWithin
	}
	var awake []time.Duration
	overlaps, spoke := 0, 0
	var waited time.Duration
	for _, bot := range c.bots {
		for _, v := range c.platform.Violations(bot) {
			c.Errorf("%s: %s", bot, v)
		}
		all := c.platform.Connections(bot)
		for i, later := range all {
			if later.Waited < clusterGhost && !c.standing(later.Opened.Add(-later.Waited)) {
				waited = max(waited, later.Waited)
			}
			for _, old := range all[:i] {
				if !old.Closed.IsZero() && !old.Closed.After(later.Opened) {
					continue
				}
				overlaps++
				stood, ok := byName[old.Token].stands(later.Opened.Add(-clusterGhost))
				if !ok {
					c.Errorf("%s: got a connection of %s at %s beside one of %s that was open until %s, want it only while that one stood still",
						bot, later.Token, later.Opened.Format(time.StampMilli), old.Token, old.Closed.Format(time.StampMilli))
					continue
				}
				d := max(0, old.Closed.Sub(stood.to))
				awake = append(awake, d)
				if d > awakeAtMost {
					c.Errorf("%s: got the connection of %s open for %v after it woke up, want at most %v", bot, old.Token, d, awakeAtMost)
				}
				if old.Heard.After(later.Opened) {
					spoke++
					if d := old.Heard.Sub(stood.to); d > silentWithin {
						c.Errorf("%s: %s spoke %v after it woke up, beside its successor; want it silent after %v", bot, old.Token, d, silentWithin)
					}
				}
			}
		}
	}
	slices.Sort(awake)
	if len(awake) > 0 {
		median, longest := awake[len(awake)/2], awake[len(awake)-1]
		c.Logf("%d connections of processes that stood still beside their successors; open after the wake-up: median %v, longest %v; %d of them spoke then", overlaps, median, longest, spoke)
		if measured && median > awakeWithin {
			c.Errorf("got a median of %v from the wake-up of a process to the end of its connections, want less than %v", median, awakeWithin)
		}
	}
	c.Logf("the longest that a new connection saw one that had ended: %v", waited)
}

// standing reports whether some process stood still at an instant.
func (c *cluster) standing(at time.Time) bool {
	return slices.ContainsFunc(c.nodes, func(n *clusterNode) bool {
		_, ok := n.stands(at)
		return ok
	})
}

// logLines reads the log of a process.
func logLines(t testing.TB, path string) (lines []logLine) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer func() { _ = f.Close() }() // it was only read
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var line logLine
		if json.Unmarshal(scan.Bytes(), &line) == nil {
			lines = append(lines, line)
		}
	}
	must(t, scan.Err())
	return lines
}
