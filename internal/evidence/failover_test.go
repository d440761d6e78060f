//go:build linux

package evidence_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"leasehold/store/postgres/pgtest"
)

const (
	// failoverBots are few: it is the database that is looked at.
	failoverBots = 12
	// failoverWithin is less than what a node holds a lease for before it gives it up to
	// one that has fewer. On a machine that takes longer a move would prove nothing.
	failoverWithin = 55 * time.Second
)

func TestFailover(t *testing.T) {
	t.Parallel() // it waits, mostly
	t.Run("three nodes go on with a promoted standby, and no installation moves", func(t *testing.T) {
		t.Parallel()
		primary := pgtest.New(t)
		c := newCluster(t, primary, clusterNodes, failoverBots)
		standby := primary.Standby(t)
		// The test's database is dropped where it was made, once nobody can take that one
		// for the primary any more.
		t.Cleanup(func() { primary.Start(t) })
		for _, n := range c.nodes {
			n.conf(drainTimeout, c.through(primary.Addr(), standby.Addr())+"&target_session_attrs=read-write", c.target, c.installations)
		}
		started := time.Now()
		c.startAll()
		pgtest.KeepBooks(t, c.url)
		c.sayAll(c.bots)
		c.arrived(time.Minute)
		sessions, holders, dials := c.sessions(), c.holders(), c.connections()

		// What was acknowledged is on the standby: an asynchronous one may lack it.
		standby.Follows(t, primary)
		primary.Stop(t)
		began := time.Now()
		c.sayAll(c.bots[:failoverBots/2]) // which nobody can store now
		standby.Promote(t)
		c.url = standby.URL(c.name())
		took := time.Since(began)
		c.sayAll(c.bots)
		c.arrived(time.Minute)
		stored := time.Since(began)
		c.heal()

		// Renewals, and what tells of changes, have found it, too.
		seen := c.renewals()
		await(t, time.Minute, func() (string, bool) {
			var listening int
			pgtest.Get(t, c.url, `SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN leasehold'`, &listening)
			return fmt.Sprintf("got %d nodes that listen, want %d", listening, clusterNodes), listening == clusterNodes
		})
		await(t, time.Minute, func() (string, bool) {
			now := c.renewals()
			return fmt.Sprintf("got renewals %v after %v, want each grow", now, seen), now[0] > seen[0] && now[1] > seen[1] && now[2] > seen[2]
		})
		nowSessions, nowHolders, silent := c.sessions(), c.holders(), 0
		for _, bot := range c.bots[failoverBots/2:] {
			silent += len(c.platform.Connections(bot))
		}
		if time.Since(started) < failoverWithin {
			want(t, "sessions", fmt.Sprint(nowSessions), fmt.Sprint(sessions))
			want(t, "holders", fmt.Sprint(nowHolders), fmt.Sprint(holders))
			want(t, "connections of those that were silent meanwhile", silent, failoverBots/2)
		}
		again := c.connections() - dials
		for _, n := range c.nodes {
			n.p.stop()
		}
		c.judge()
		t.Logf("the standby took writes %v after the end of the primary; what was said then was stored and delivered after %v; %d of %d bots were dialled again",
			took.Round(time.Millisecond), stored.Round(time.Millisecond), again, failoverBots)
	})
}

// sayAll has bots say something each.
func (c *cluster) sayAll(bots []string) {
	for _, bot := range bots {
		c.platform.Push(bot, 1)
	}
	c.pushed += len(bots)
}

// holders are who has each bot.
func (c *cluster) holders() (names []string) {
	for _, bot := range c.bots {
		all := c.platform.Connections(bot)
		names = append(names, all[len(all)-1].Token)
	}
	return names
}

func (c *cluster) sessions() (ids []string) {
	c.Helper()
	eachSession(c, func(id string, _ int64) { ids = append(ids, id) })
	return ids
}

// renewals are how often each session was renewed.
func (c *cluster) renewals() (n []int64) {
	c.Helper()
	eachSession(c, func(_ string, seq int64) { n = append(n, seq) })
	return n
}

func eachSession(c *cluster, f func(id string, seq int64)) {
	c.Helper()
	ctx := context.WithoutCancel(c.Context())
	conn, err := pgx.Connect(ctx, c.url)
	must(c, err)
	defer func() { _ = conn.Close(ctx) }() // it was only read
	rows, err := conn.Query(ctx, `SELECT session_id, seq FROM session ORDER BY session_id`)
	must(c, err)
	var id string
	var seq int64
	_, err = pgx.ForEachRow(rows, []any{&id, &seq}, func() error { f(id, seq); return nil })
	must(c, err)
}
