//go:build linux

package evidence_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"leasehold/delivery"
	"leasehold/store/postgres/pgtest"
)

const (
	// clusterEnv is for how many seconds faults happen; "make soak" says 600, and has
	// soakBots installations. clusterSeedEnv repeats a plan.
	clusterEnv, clusterSeedEnv = "LEASEHOLD_CLUSTER_SECONDS", "LEASEHOLD_CLUSTER_SEED"
	clusterNodes               = 3
	clusterBots, soakBots      = 40, 300

	// clusterTTL is short, for many takeovers, and the rest of the timing fits into it
	// with attempts that a loaded machine can answer.
	clusterTTL    = 10 * time.Second
	clusterTiming = "[lease]\nttl = \"10s\"\nrenew_every = \"1s\"\nattempt_timeout = \"1300ms\"\nmargin = \"3s\"\n"

	// clusterDrain is what a process without a database takes to give up.
	clusterDrain = 5 * time.Second

	// awakeWithin is how long after a pause a process that was taken over may speak, and
	// in most cases its sockets be open; awakeAtMost bounds those on any machine.
	awakeWithin, awakeAtMost = 200 * time.Millisecond, 5 * time.Second
)

func TestCluster(t *testing.T) {
	t.Parallel() // it waits, mostly
	t.Run("three processes on one Postgres hold each connection once and lose nothing, whatever happens to them and to it", func(t *testing.T) {
		t.Parallel()
		length, bots := time.Duration(0), clusterBots
		if text := os.Getenv(clusterEnv); text != "" {
			seconds, err := strconv.Atoi(text)
			must(t, err)
			length, bots = time.Duration(seconds)*time.Second, soakBots
		}
		seed := rand.Uint64()
		if text := os.Getenv(clusterSeedEnv); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			must(t, err)
			seed = n
		}
		plan := planCluster(seed, clusterNodes, clusterTTL, length)
		defer func() {
			if t.Failed() {
				t.Logf("%s=%d %s=%s has this plan:\n%s", clusterSeedEnv, seed, clusterEnv, os.Getenv(clusterEnv), plan)
			}
		}()
		c := newCluster(t, clusterServer(t), clusterNodes, bots)
		for _, n := range c.nodes {
			n.conf(clusterDrain, c.through(n.proxy.Addr()), c.target, clusterTiming+c.installations)
		}
		c.startAll()
		pgtest.KeepBooks(t, c.url)
		c.live(plan, seed)
		c.heal()
		c.arrived(3 * time.Minute)
		for _, n := range c.nodes {
			n.p.stop()
		}
		c.judge()
		t.Logf("seed %d: %d faults in %v, %d events over %d installations; %d connections, %d webhooks repeated",
			seed, len(plan), plan.over().Round(time.Second), c.pushed, len(c.bots), c.connections(), c.program.repeats)
	})
}

// clusterServer is a server that waits for a mute client no longer than a shutdown of
// it may take: it does not end before.
func clusterServer(t *testing.T) *pgtest.Server {
	t.Helper()
	return pgtest.New(t, "authentication_timeout=5s")
}

// live lets the bots speak while what is planned happens. A database that is
// restarted holds it up for that long.
func (c *cluster) live(plan clusterPlan, seed uint64) {
	c.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	var ends []clusterFault
	next, began := 0, time.Now()
	for over := plan.over() + time.Second; ; {
		now := time.Since(began)
		for ; next < len(plan) && plan[next].at <= now; next++ {
			c.begin(plan[next])
			ends = append(ends, plan[next])
		}
		for i := 0; i < len(ends); i++ {
			if ends[i].at+ends[i].lasts <= now {
				c.end(ends[i])
				ends = append(ends[:i], ends[i+1:]...)
				i--
			}
		}
		if now > over && len(ends) == 0 && next == len(plan) {
			return
		}
		for _, n := range c.nodes {
			n.tend(time.Now())
		}
		for range 5 {
			c.platform.Push(c.bots[rng.IntN(len(c.bots))], 1)
			c.pushed++
		}
		pause(c.T, 50*time.Millisecond)
	}
}

func (c *cluster) begin(f clusterFault) {
	c.Helper()
	if f.node == database {
		if f.kind == faultCrash {
			c.server.Stop(c)
		} else {
			c.server.Shut(c)
		}
		return
	}
	n := c.nodes[f.node]
	switch f.kind {
	case faultKill:
		n.kill(f.lasts)
	case faultTerm:
		n.term(f.lasts)
	case faultStop:
		n.freeze()
	case faultHole:
		n.proxy.Pause()
	case faultDeaf:
		n.proxy.PauseAnswers()
	case faultMute:
		n.proxy.PauseRequests()
	case faultSlow:
		n.proxy.Latency(rand.N(400 * time.Millisecond))
	case faultCut:
		n.proxy.Cut()
	}
}

func (c *cluster) end(f clusterFault) {
	c.Helper()
	switch f.kind {
	case faultCrash, faultRestart:
		c.server.Start(c)
	case faultStop:
		c.nodes[f.node].thaw()
	case faultHole, faultDeaf, faultMute:
		c.nodes[f.node].proxy.Resume()
	case faultSlow:
		c.nodes[f.node].proxy.Latency(0)
	}
}

// heal waits until every process is up and every bot connected, with nothing in their
// way any more.
func (c *cluster) heal() {
	c.Helper()
	await(c.T, 3*time.Minute, func() (string, bool) {
		up := true
		for _, n := range c.nodes {
			n.tend(time.Now())
			up = up && !n.p.over() && !n.asked
		}
		live := c.platform.Live("")
		return fmt.Sprintf("got %d connections, and all nodes up: %v; want %d", live, up, len(c.bots)), up && live == len(c.bots)
	})
}

// judge checks the books of the platform, of the program and of the server against
// each other, once everything has arrived and the processes have stopped.
func (c *cluster) judge() {
	c.Helper()
	stored := c.kept()
	want(c.T, "events in the store", len(stored), c.pushed)
	for event, r := range stored {
		if r.state != delivery.Delivered {
			c.Errorf("%s: got %v, want it delivered", event, r.state)
		}
		if id := c.program.id(event); id != r.webhook {
			c.Errorf("%s: got webhook id %q, the store has %q", event, id, r.webhook)
		}
	}
	for _, words := range c.program.complaints() {
		c.Error(words)
	}
	books := pgtest.ReadBooks(c.T, c.url)
	books.Sound(c.T)
	c.Logf("%d grants, %d events committed, by the server's commit times none of them late", books.Grants, books.Events)
	c.exclusive()
}
