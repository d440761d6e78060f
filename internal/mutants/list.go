package main

import "slices"

// mutant takes one promise away.
type mutant struct {
	name     string // what is taken away, as the report says it
	file     string
	old, new string
	pkg, run string   // the tests that must notice
	args     []string // of the test binary
}

const (
	engineTests   = "TestScenarios|TestSimulationHolds|TestKillSwitch|TestAcceptQueue|TestBackoff"
	storeTests    = "TestStore"
	trialTests    = "TestTrial"
	historyTests  = "TestHistories|TestStore" // a history shows it nearly always
	deliveryTests = "TestSimulation|TestMarks|TestDrop|TestLanes|TestOutage|TestRetries"
)

var mutants = slices.Concat(promised, answered)

// promised are mutants of leases, of stores, and of the way from a platform to a program.
var promised = []mutant{
	// When a node trusts itself.
	{
		name: "a fence without its margin", file: "engine/timing.go", old: "- t.Margin", new: "",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "trust counted from the answer instead of from the request", file: "engine/core_session.go", old: "fence = in.sentAt.Add(c.o.timing.Trust())", new: "fence = c.now.Add(c.o.timing.Trust())",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a gate that does not look at the clock", file: "engine/trust.go", old: "if !g.trust.valid(g.boot()) {", new: "if false {",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a passed fence that waits its turn", file: "engine/core.go", old: "if c.session.open && c.now >= c.session.fence {", new: "if false {",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a new session beside sockets of the old one", file: "engine/core_session.go", old: "if c.socketsOpen() {", new: "if false {",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a reaper that believes a clock that stepped", file: "engine/core_session.go", old: "if passed > least+clockSlack || passed < least-clockSlack {", new: "if false && passed > least {",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a reaper that has watched the clock for less than a TTL", file: "engine/core_session.go", old: "s.reapAt = c.now.Add(c.o.timing.TTL) // a step", new: "// a step",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a dial just before the fence", file: "engine/core_dial.go", old: "c.session.fence.Sub(c.now) >= c.o.timing.RenewEvery", new: "true",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a clock that stands still while the machine sleeps", file: "engine/clock_linux.go", old: "unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)", new: "unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)",
		pkg: "./engine", run: "TestSystemClock",
	},

	// What becomes of a lease.
	{
		name: "a lease that names us, adopted instead of released", file: "engine/core_list.go", old: "c.release(Held{u.id, l.Epoch})", new: "c.granted(Grant{ID: u.id, Epoch: l.Epoch})",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a list believed over an operation that it overlapped", file: "engine/core_list.go", old: "overlapped := u.busy > 0 || u.touched >= c.list.seq", new: "overlapped := false",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a row that one list lacks, believed to be gone", file: "engine/core_list.go", old: "u.absent >= 2 || !u.held", new: "u.absent >= 1",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a drained node that holds on", file: "engine/core_drain.go", old: "return c.draining || c.drained", new: "return c.draining",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a hand-over faster than the others may dial", file: "engine/core_share.go", old: "n := min(len(able), h.over, int(h.tokens))", new: "n := min(len(able), h.over)",
		pkg: "./engine", run: "TestFairShare",
	},
	{
		name: "a balance that does not count what is about to be taken", file: "engine/core_share.go", old: "for range free {", new: "for range 0 * free {",
		pkg: "./engine", run: "TestFairShare",
	},
	{
		name: "a node that takes what it cannot reach", file: "engine/core_claim.go", old: "c.deaf(u.row.Type) && c.freeFor", new: "false && c.freeFor",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a failure of an old config, counted for the new one", file: "engine/core_term.go", old: "case t.fp != u.row.Fingerprint:", new: "case false:",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a term that begins beside the sockets of its predecessor", file: "engine/core_term.go", old: "if !t.closed { // never", new: "if false { // never",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a channel that is never cut off", file: "engine/core_term.go", old: "	case goodbye:\n		c.kill(u)\n", new: "	case goodbye:\n		t.deadline = Never\n",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a dial that registers after the kill", file: "engine/sockets.go", old: "	if dead {\n		c.abort()\n		return channel.ErrKilled\n	}\n", new: "	_ = dead\n",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "a wait above its cap", file: "engine/backoff.go", old: "high = min(limit, backoffBase<<shift)", new: "high = limit * 2",
		pkg: "./engine", run: engineTests,
	},
	{
		name: "failures forgotten by a slow dial", file: "engine/core_term.go", old: "if up >= StableAfter {", new: "if true {",
		pkg: "./engine", run: engineTests,
	},

	// The statements of SQLite.
	{
		name: "a release that does not compare the epoch (SQLite)", file: "store/sqlite/lease.go", old: "UPDATE lease SET owner = NULL WHERE id = $1 AND epoch = $2 AND owner = $3", new: "UPDATE lease SET owner = NULL WHERE id = $1 AND $2 > 0 AND owner = $3",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "a renewal with an expiry predicate (SQLite)", file: "store/sqlite/session.go", old: "expires_at = $2 WHERE session_id = $1 RETURNING seq", new: "expires_at = $2 WHERE session_id = $1 AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) RETURNING seq",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "a renewal that brings a dead session back (SQLite)", file: "store/sqlite/session.go", old: "`UPDATE session SET seq = seq + 1, expires_at = $2 WHERE session_id = $1 RETURNING seq`",
		new: "`INSERT INTO session(session_id, instance_id, seq, expires_at, host, name, version, weight, draining, opened_at) VALUES ($1, $1, 1, $2, '', '', '', 1, 0, 0) ON CONFLICT (session_id) DO UPDATE SET seq = seq + 1, expires_at = $2 RETURNING seq`",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "an accept that does not ask for the owner's session (SQLite)", file: "store/sqlite/group.go", old: "owner = $3 AND run = $4\n   AND EXISTS (SELECT 1 FROM session WHERE session_id = $3)`", new: "owner = $3 AND run = $4`",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "an accept of an earlier term (SQLite)", file: "store/sqlite/group.go", old: "owner = $3 AND run = $4\n", new: "owner = $3 AND $4 >= 0\n",
		pkg: "./store/sqlite", run: historyTests,
	},
	{
		name: "an accept of an earlier epoch (SQLite)", file: "store/sqlite/group.go", old: "epoch = $2 AND owner = $3 AND run = $4\n", new: "$2 > 0 AND owner = $3 AND run = $4\n",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "a mark that does not compare the epoch (SQLite)", file: "store/sqlite/group.go", old: "epoch = $2 AND owner = $3\n", new: "$2 > 0 AND owner = $3\n",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "a mark that does not ask for the owner's session (SQLite)", file: "store/sqlite/group.go", old: "owner = $3\n   AND EXISTS (SELECT 1 FROM session WHERE session_id = $3)`", new: "owner = $3`",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "a claim for a session that drains (SQLite)", file: "store/sqlite/lease.go", old: "AND m.draining = 0", new: "",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "a claim that takes what is held (SQLite)", file: "store/sqlite/lease.go", old: "   AND (owner IS NULL OR NOT EXISTS (SELECT 1 FROM session s WHERE s.session_id = lease.owner))\n", new: "",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "a grant whose epoch may repeat (SQLite)", file: "store/sqlite/lease.go", old: "epoch = max(epoch + 1, $3)", new: "epoch = $3",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "a term that does not raise the run (SQLite)", file: "store/sqlite/lease.go", old: "SET run = run + 1, dialled_at", new: "SET run = run, dialled_at",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "a drain that a restart takes back (SQLite)", file: "store/sqlite/drain.go", old: "AND EXISTS (SELECT 1 FROM node_drain d WHERE d.instance_id = session.instance_id)", new: "AND false",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "a wait of an old config, kept for the new one (SQLite)", file: "store/sqlite/lease.go", old: "err != nil || changed {", new: "err != nil || false && changed {",
		pkg: "./store/sqlite", run: storeTests,
	},

	// Those of nodes that share a store.
	{
		name: "a task that is taken although its holder lives", file: "store/internal/record/task.go", old: "   AND (owner IS NULL OR NOT EXISTS (SELECT 1 FROM session s WHERE s.session_id = lease.owner))\n", new: "",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "a task's run that is noted by one who lost it", file: "store/internal/record/node.go", old: " WHERE $7 = '' OR EXISTS", new: " WHERE true OR $7 = '' OR EXISTS",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "a file that each of the nodes applies", file: "store/internal/record/reconcile.go", old: "seeded = !some", new: "seeded = true || some",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "a death that counts for a link that only waited (SQLite)", file: "store/sqlite/lease.go", old: "owner IS NOT NULL AND dialled_at > 0 AND", new: "owner IS NOT NULL AND",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "a death that counts for a link that had lasted (Postgres)", file: "store/postgres/lease.go", old: "c.since <= leasehold_now() - $3", new: "c.since <= 0 * $3",
		pkg: "./store/postgres", run: storeTests,
	},
	{
		name: "a lost database that is begun anew (Postgres)", file: "store/postgres/own.go", old: "err != nil || id.SharedKey == \"\" {", new: "err != nil || true {",
		pkg: "./store/postgres", run: "TestOwnDatabase",
	},

	// Those of Postgres.
	{
		name: "an accept that does not lock its lease (Postgres)", file: "store/postgres/accept.go", old: " FOR SHARE OF l),", new: "),",
		pkg: "./store/postgres", run: trialTests,
	},
	{
		name: "an accept whose lock a claim does not wait for (Postgres)", file: "store/postgres/accept.go", old: " FOR SHARE OF l),", new: " FOR KEY SHARE OF l),",
		pkg: "./store/postgres", run: trialTests,
	},
	{
		name: "an accept that does not ask for the owner's session (Postgres)", file: "store/postgres/accept.go", old: " WHERE EXISTS (SELECT 1 FROM session s WHERE s.session_id = k.owner) ORDER BY l.id FOR SHARE OF l),", new: " ORDER BY l.id FOR SHARE OF l),",
		pkg: "./store/postgres", run: historyTests,
	},
	{
		name: "a mark that does not lock its lease (Postgres)", file: "store/postgres/mark.go", old: " FOR SHARE OF l),", new: "),",
		pkg: "./store/postgres", run: trialTests,
	},
	{
		name: "a claim in one plain statement (Postgres)", file: "store/postgres/lease.go", old: "WITH snap AS MATERIALIZED (\n  SELECT l.id, l.epoch FROM lease l WHERE l.id = ANY($2::text[])\n    AND (l.owner IS NULL OR NOT EXISTS (SELECT 1 FROM session s WHERE s.session_id = l.owner))\n    AND EXISTS (SELECT 1 FROM session m WHERE m.session_id = $1 AND NOT m.draining)\n), locked AS MATERIALIZED (\n  SELECT l.id, c.epoch FROM lease l JOIN snap c ON c.id = l.id AND c.epoch = l.epoch FOR NO KEY UPDATE OF l SKIP LOCKED\n)\nUPDATE lease l SET fails = l.fails + (l.owner IS NOT NULL AND l.dialled_at > 0 AND NOT EXISTS (\n         SELECT 1 FROM link_status c WHERE c.installation_id = l.id AND c.epoch = l.epoch AND c.state = 'connected' AND c.since <= leasehold_now() - $3))::int,\n       dialled_at = 0, owner = $1, epoch = greatest(l.epoch + 1, leasehold_now())\n  FROM locked k WHERE l.id = k.id AND l.epoch = k.epoch\n",
		new: "UPDATE lease l SET fails = l.fails + (l.owner IS NOT NULL AND l.dialled_at > 0 AND NOT EXISTS (\n         SELECT 1 FROM link_status c WHERE c.installation_id = l.id AND c.epoch = l.epoch AND c.state = 'connected' AND c.since <= leasehold_now() - $3))::int,\n       dialled_at = 0, owner = $1, epoch = greatest(l.epoch + 1, leasehold_now())\n WHERE l.id = ANY($2::text[]) AND (l.owner IS NULL OR NOT EXISTS (SELECT 1 FROM session s WHERE s.session_id = l.owner))\n   AND EXISTS (SELECT 1 FROM session m WHERE m.session_id = $1 AND NOT m.draining)\n",
		pkg: "./store/postgres", run: trialTests,
	},
	{
		name: "a renewal with an expiry predicate (Postgres)", file: "store/postgres/renew.go", old: "WHERE session_id = $1 RETURNING seq, leasehold_now()", new: "WHERE session_id = $1 AND expires_at > leasehold_now() RETURNING seq, leasehold_now()",
		pkg: "./store/postgres", run: storeTests,
	},
	{
		name: "an accept that locks in no order (Postgres)", file: "store/postgres/accept.go", old: "ORDER BY l.id FOR SHARE OF l),", new: "ORDER BY md5(l.id || k.owner) FOR SHARE OF l),",
		pkg: "./store/postgres", run: "TestLockOrder",
	},
	{
		name: "a mark whose lock a claim does not wait for (Postgres)", file: "store/postgres/mark.go", old: " FOR SHARE OF l),", new: " FOR KEY SHARE OF l),",
		pkg: "./store/postgres", run: trialTests,
	},
	{
		name: "a mark that does not ask for the owner's session (Postgres)", file: "store/postgres/mark.go", old: " WHERE EXISTS (SELECT 1 FROM session s WHERE s.session_id = k.owner) ORDER BY l.id FOR SHARE OF l),", new: " ORDER BY l.id FOR SHARE OF l),",
		pkg: "./store/postgres", run: storeTests,
	},
	{
		name: "an accept of an earlier epoch (Postgres)", file: "store/postgres/accept.go", old: "JOIN k ON k.id = l.id AND k.epoch = l.epoch AND", new: "JOIN k ON k.id = l.id AND",
		pkg: "./store/postgres", run: storeTests,
	},
	{
		name: "an accept of an earlier term (Postgres)", file: "store/postgres/accept.go", old: " AND k.run = l.run\n", new: "\n",
		pkg: "./store/postgres", run: historyTests,
	},
	{
		name: "a mark that does not compare the epoch (Postgres)", file: "store/postgres/mark.go", old: "JOIN k ON k.id = l.id AND k.epoch = l.epoch AND", new: "JOIN k ON k.id = l.id AND",
		pkg: "./store/postgres", run: storeTests,
	},
	{
		name: "a release that locks in no order (Postgres)", file: "store/postgres/lease.go", old: "ORDER BY l.id FOR NO KEY UPDATE OF l\n), rel", new: "ORDER BY md5(l.id || $1) FOR NO KEY UPDATE OF l\n), rel",
		pkg: "./store/postgres", run: "TestLockOrder",
	},
	{
		name: "a release that does not compare the epoch (Postgres)", file: "store/postgres/lease.go", old: "ON l.id = r.id AND l.epoch = r.epoch AND l.owner = $1 ORDER BY l.id FOR NO KEY UPDATE OF l\n), rel AS (\n  UPDATE lease l SET owner = NULL FROM r, (SELECT count(*) AS n FROM r) h\n   WHERE h.n > 0 AND l.id = r.id AND l.epoch = r.epoch AND",
		new: "ON l.id = r.id AND l.owner = $1 ORDER BY l.id FOR NO KEY UPDATE OF l\n), rel AS (\n  UPDATE lease l SET owner = NULL FROM r, (SELECT count(*) AS n FROM r) h\n   WHERE h.n > 0 AND l.id = r.id AND",
		pkg: "./store/postgres", run: historyTests,
	},
	{
		name: "a renewal that brings a dead session back (Postgres)", file: "store/postgres/renew.go", old: "`UPDATE session SET seq = seq + 1, expires_at = leasehold_now() + $2 WHERE session_id = $1 RETURNING",
		new: "`INSERT INTO session(session_id, instance_id, seq, expires_at, host, name, version, weight, draining, opened_at) VALUES ($1, $1, 1, leasehold_now() + $2, '', '', '', 1, false, 0) ON CONFLICT (session_id) DO UPDATE SET seq = session.seq + 1, expires_at = excluded.expires_at RETURNING",
		pkg: "./store/postgres", run: storeTests,
	},
	{
		name: "a clock that stands still in a transaction (Postgres)", file: "store/postgres/migrations/0001_first.sql", old: "AS 'SELECT (extract(epoch FROM clock_timestamp())", new: "AS 'SELECT (extract(epoch FROM now())",
		pkg: "./store/postgres", run: "TestClock",
	},
	{
		name: "a term that does not raise the run (Postgres)", file: "store/postgres/lease.go", old: "SET run = run + 1, dialled_at", new: "SET run = run, dialled_at",
		pkg: "./store/postgres", run: storeTests,
	},
	{
		name: "a grant whose epoch may repeat (Postgres)", file: "store/postgres/lease.go", old: "greatest(l.epoch + 1, leasehold_now())", new: "leasehold_now()",
		pkg: "./store/postgres", run: storeTests,
	},
	{
		name: "a drain that a restart takes back (Postgres)", file: "store/postgres/drain.go", old: "AND EXISTS (SELECT 1 FROM node_drain d WHERE d.instance_id = session.instance_id)", new: "AND false",
		pkg: "./store/postgres", run: storeTests,
	},
	{
		name: "a wait of an old config, kept for the new one (Postgres)", file: "store/postgres/lease.go", old: "FROM i WHERE i.same AND l.id", new: "FROM i WHERE l.id",
		pkg: "./store/postgres", run: storeTests,
	},

	// From the platform to the disk, and on to the program.
	{
		name: "an acknowledgement of what was not stored", file: "channel/inbox.go", old: "err != nil && !errors.Is(err, ErrTooLarge) {", new: "false {",
		pkg: "./channel/websocket", run: "TestAFailedCommit",
	},
	{
		name: "an acknowledgement before the commit", file: "channel/inbox.go", old: "	// The backend bounds the commit and the kill ends it: no context of ours does.\n", new: "	for _, h := range group {\n		if h.ack != nil {\n			_ = h.ack()\n		}\n	}\n",
		pkg: "./channel/websocket", run: "TestNothingIsAcknowledged",
	},
	{
		name: "a delivered mark that is not kept", file: "delivery/settle.go", old: "m.State, m.Error, m.Replies = Delivered,", new: "m.State, m.Error, m.Replies = Pending,",
		pkg: "./delivery", run: deliveryTests,
	},
	{
		name: "attempts that an outage used up, not given back", file: "delivery/circuit.go", old: "		d.giveBack(t, s, now)\n", new: "		_ = s\n",
		pkg: "./delivery", run: deliveryTests,
	},
	{
		name: "an event that comes back behind its successors", file: "delivery/lane.go", old: "for i > 0 && l.entries[i-1].seq > e.seq {", new: "for false {",
		pkg: "./delivery", run: deliveryTests,
	},
	{
		name: "a lane that goes on where it should hold", file: "delivery/dispatcher.go", old: "t.OnFailure == Skip && e.attempts", new: "e.attempts",
		pkg: "./delivery", run: deliveryTests,
	},
	{
		name: "a target's own time to come back, ignored", file: "delivery/circuit.go", old: "t.probeAt = max(t.probeAt, now.add(toldWait(r.After, d.random)))", new: "_ = now",
		pkg: "./delivery", run: deliveryTests + "|TestRetryAfter",
	},
	{
		name: "a message that its holder died with, sent again", file: "delivery/outbound/journey.go", old: "j.end(writes, End{State: Unknown, Error: LostWithHolder})", new: "j.end(writes, End{State: Queued, Error: LostWithHolder})",
		pkg: "./delivery/outbound", run: "TestKilledAtEveryStep|TestLeases",
	},
	{
		name: "a message whose answer was lost, sent again", file: "delivery/outbound/journey.go", old: "		e.State = Unknown\n", new: "		e.State = Queued\n",
		pkg: "./delivery/outbound", run: "TestOutcomes",
	},
	{
		name: "two messages of a conversation on their way", file: "delivery/outbound/queue.go", old: "if l.flying != nil {", new: "if false {",
		pkg: "./delivery/outbound", run: "TestSending",
	},
	{
		name: "a message that is done, ended again (SQLite)", file: "store/sqlite/postbox.go", old: "AND lease_id = $2 AND state = $3`", new: "AND lease_id = $2 AND $3 >= 0`",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "an outcome stored for a lease that was dropped", file: "delivery/marker.go", old: "slices.DeleteFunc(d.outcomes, func(o *outcome) bool { return o.hold == h })", new: "slices.DeleteFunc(d.outcomes, func(*outcome) bool { return false })",
		pkg: "./delivery", run: deliveryTests,
	},
}
