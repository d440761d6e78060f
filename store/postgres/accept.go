package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"leasehold/channel"
	"leasehold/engine"
	"leasehold/internal/eventid"
	"leasehold/internal/fault"
	"leasehold/store/internal/record"
)

const (
	// The fence is a share lock on the lease's row: a takeover waits until this is
	// committed, and what comes after a takeover finds another epoch. The owner's session
	// must exist, but is not locked: overlapping share locks of a stale owner would
	// starve whoever takes over. Locks are taken in the order of ids, and before the
	// first insert. $1 to $6 are the terms, $7 to $14 the events, which point at them.
	//
	// The answer has a row for each term that holds, and one for each new event.
	sqlAccept = `WITH clock AS MATERIALIZED (SELECT leasehold_now() AS now),
k AS MATERIALIZED (SELECT n, id, epoch, owner, run, identity, cursor
  FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::bytea[]) WITH ORDINALITY AS k(id, epoch, owner, run, identity, cursor, n)),
f AS MATERIALIZED (SELECT k.n, l.id, l.epoch, k.owner, k.identity, k.cursor
  FROM lease l JOIN k ON k.id = l.id AND k.epoch = l.epoch AND k.owner = l.owner AND k.run = l.run
 WHERE EXISTS (SELECT 1 FROM session s WHERE s.session_id = k.owner) ORDER BY l.id FOR SHARE OF l),
held AS MATERIALIZED (SELECT count(*) AS n FROM f),
e AS (INSERT INTO event(installation_id, lease_id, event_id, epoch, owner, type, conversation, thread, occurred_at, accepted_at, body)
  SELECT e.installation, f.id, e.event_id, f.epoch, f.owner, e.type, e.conversation, e.thread, e.occurred, clock.now, e.body
    FROM held CROSS JOIN clock
   CROSS JOIN unnest($7::bigint[], $8::text[], $9::bytea[], $10::bytea[], $11::bytea[], $12::bytea[], $13::bigint[], $14::bytea[]) WITH ORDINALITY
           AS e(k, installation, event_id, type, conversation, thread, occurred, body, n)
    JOIN f ON f.n = e.k WHERE held.n > 0 ORDER BY e.n
  ON CONFLICT (installation_id, (CASE WHEN length(event_id) <= 1024 THEN event_id ELSE sha256(event_id) END)) DO NOTHING
  RETURNING seq, installation_id, event_id),
c AS (INSERT INTO cursor(lease_id, identity, epoch, value)
  SELECT f.id, f.identity, f.epoch, f.cursor FROM f WHERE f.cursor IS NOT NULL ORDER BY f.id
  ON CONFLICT (lease_id, identity) DO UPDATE SET epoch = excluded.epoch, value = excluded.value
   WHERE cursor.epoch <= excluded.epoch AND cursor.value <> excluded.value)
SELECT f.n, '', ''::bytea, 0 FROM f UNION ALL SELECT 0, e.installation_id, e.event_id, e.seq FROM e`

	// Under the same transaction's locks. Webhook ids begin with the event's number, so
	// they are made here and not there.
	sqlDeliveries = `INSERT INTO delivery(event_seq, target, lease_id, epoch, webhook_id, next_attempt)
SELECT d.seq, d.target, d.lease, d.epoch, d.webhook, now FROM leasehold_now() AS now
 CROSS JOIN unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[]) AS d(seq, target, lease, epoch, webhook)
ON CONFLICT (event_seq, target) DO NOTHING`

	sqlFollowUps = `INSERT INTO follow_up(event_seq, expires_at, sealed)
SELECT f.seq, f.expires, f.sealed FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS f(seq, expires, sealed)`

	// Locked, so that it rides there still when its events are committed.
	sqlRiders = `SELECT i.id, i.via FROM installation i WHERE i.id = ANY($1::text[]) ORDER BY i.id FOR SHARE OF i`
)

// accept is one batch in a queue.
type accept struct {
	req    engine.AcceptRequest
	result engine.Accepted
	answer error // to this caller alone
	done   chan error
}

// Accept implements engine.Store. An event whose installation does not ride on
// the term's refuses the batch: fault.Invalid. Nobody may change the bodies any
// more, not even after ctx has ended: they may still be waiting to be written.
func (s *Store) Accept(ctx context.Context, r engine.AcceptRequest) (engine.Accepted, error) {
	a := &accept{req: r, done: make(chan error, 1)}
	if err := s.writer(r.Term.Installation).add(ctx, a, a.done); err != nil {
		return engine.Accepted{}, fmt.Errorf("accept for %s: %w", r.Term.Installation, err)
	}
	return a.result, nil
}

func (a *accept) size() (rows, bytes int) {
	for i := range a.req.Events {
		rows += 1 + len(a.req.Events[i].Targets)
		bytes += len(a.req.Events[i].Body)
	}
	return max(1, rows), bytes
}

func (a *accept) settle(err error) {
	if err == nil {
		err = a.answer
	}
	a.done <- err
}

// installation is whose an event is.
func (a *accept) installation(e *channel.Event) string {
	if e.Installation == "" {
		return a.req.Term.Installation
	}
	return e.Installation
}

// stream is a term with the identity whose cursor it moves.
type stream struct {
	term     channel.Term
	identity string
}

// acceptGroup is what the batches of one transaction are made into.
type acceptGroup struct {
	streams []stream
	cursors [][]byte // by stream; nil = stays
	batches map[stream][]*accept
	numbers map[stream]int64 // from 1, as the database counts them
	held    map[int64]bool
	seqs    map[[2]string]int64 // of new events, by installation and platform id
}

// writeAccepts commits batches together.
func (s *Store) writeAccepts(ctx context.Context, all []*accept) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // with a transaction that is open still, it is closed
	for _, a := range all {
		a.result, a.answer = engine.Accepted{}, nil
	}
	steps := s.opening()
	if riders := ridersOf(all); len(riders) > 0 {
		vias := map[string]string{}
		lock := step{sql: sqlRiders, args: []any{riders}, scan: func(rows pgx.Rows) error {
			var id, via string
			err := rows.Scan(&id, &via)
			vias[id] = via
			return err
		}}
		if err := send(ctx, conn, append(steps, lock)...); err != nil {
			return err
		}
		refuseForeign(all, vias)
		steps = nil
	}
	g := groupAccepts(all)
	if err := send(ctx, conn, append(steps, g.step())...); err != nil {
		return err
	}
	steps = g.settle()
	return s.committing(func() error { return send(ctx, conn, append(steps, step{sql: "COMMIT"})...) })
}

// ridersOf are the installations that events name beside their term's own.
func ridersOf(all []*accept) (ids []string) {
	for _, a := range all {
		for i := range a.req.Events {
			if id := a.req.Events[i].Event.Installation; id != "" && id != a.req.Term.Installation {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// refuseForeign answers the batches with an event of an installation that does
// not ride on theirs.
func refuseForeign(all []*accept, vias map[string]string) {
	for _, a := range all {
		lease := a.req.Term.Installation
		for i := range a.req.Events {
			if id := a.installation(&a.req.Events[i].Event); id != lease && vias[id] != lease {
				a.answer = fault.Errorf(fault.Invalid, "installation %s does not ride on %s", id, lease)
			}
		}
	}
}

// groupAccepts merges the batches that were not refused, per stream, in the order of
// leases.
func groupAccepts(all []*accept) *acceptGroup {
	g := &acceptGroup{batches: map[stream][]*accept{}, numbers: map[stream]int64{}, held: map[int64]bool{}, seqs: map[[2]string]int64{}}
	for _, a := range all {
		if a.answer != nil {
			continue
		}
		st := stream{a.req.Term, a.req.Identity}
		if _, known := g.batches[st]; !known {
			g.streams = append(g.streams, st)
		}
		g.batches[st] = append(g.batches[st], a)
	}
	slices.SortStableFunc(g.streams, func(a, b stream) int { return strings.Compare(a.term.Installation, b.term.Installation) })
	g.cursors = make([][]byte, len(g.streams))
	for n, st := range g.streams {
		g.numbers[st] = int64(n + 1)
		for _, a := range g.batches[st] {
			if a.req.Cursor != nil {
				g.cursors[n] = a.req.Cursor
			}
		}
	}
	return g
}

// step is the group's statement.
func (g *acceptGroup) step() step {
	n := len(g.streams)
	ids, owners, identities := make([]string, 0, n), make([]string, 0, n), make([]string, 0, n)
	epochs, runs := make([]int64, 0, n), make([]int64, 0, n)
	var keys, occurred []int64
	var installations []string
	var eventIDs, types, conversations, threads, bodies [][]byte
	for _, st := range g.streams {
		ids, owners, identities = append(ids, st.term.Installation), append(owners, st.term.Owner), append(identities, st.identity)
		epochs, runs = append(epochs, st.term.Epoch), append(runs, st.term.Run)
		for _, a := range g.batches[st] {
			for i := range a.req.Events {
				h := &a.req.Events[i]
				e := &h.Event
				body := h.Body
				if body == nil {
					body = []byte{}
				}
				keys, occurred = append(keys, g.numbers[st]), append(occurred, record.Millis(e.Time))
				installations = append(installations, a.installation(e))
				eventIDs, types = append(eventIDs, []byte(e.ID)), append(types, []byte(e.Type))
				conversations, threads = append(conversations, []byte(e.Conversation.ID)), append(threads, []byte(e.Thread))
				bodies = append(bodies, body)
			}
		}
	}
	return step{
		sql:  sqlAccept,
		args: []any{ids, epochs, owners, runs, identities, g.cursors, keys, installations, eventIDs, types, conversations, threads, occurred, bodies},
		scan: g.scan,
	}
}

func (g *acceptGroup) scan(rows pgx.Rows) error {
	var number, seq int64
	var installation string
	var event []byte
	if err := rows.Scan(&number, &installation, &event, &seq); err != nil {
		return err
	}
	if number > 0 {
		g.held[number] = true
	} else {
		g.seqs[[2]string{installation, string(event)}] = seq
	}
	return nil
}

// settle tells the batches what became of them, and returns what is left to be
// written: the deliveries of the new events, and their follow-up addresses. Of an event that stands in several
// batches, or twice in one, the first is the new one.
func (g *acceptGroup) settle() []step {
	var seqs, epochs []int64
	var targets, leases, webhooks []string
	var followed, expiries []int64
	var sealed [][]byte
	for _, st := range g.streams {
		for _, a := range g.batches[st] {
			if !g.held[g.numbers[st]] {
				a.answer = engine.ErrFenced
				continue
			}
			for i := range a.req.Events {
				h := &a.req.Events[i]
				key := [2]string{a.installation(&h.Event), h.Event.ID}
				seq, fresh := g.seqs[key]
				if !fresh {
					a.result.Duplicates++
					continue
				}
				delete(g.seqs, key)
				a.result.LastSeq = max(a.result.LastSeq, seq)
				if h.FollowUp != nil {
					followed, expiries, sealed = append(followed, seq), append(expiries, record.Millis(h.FollowUpUntil)), append(sealed, h.FollowUp)
				}
				for _, target := range h.Targets {
					seqs, epochs = append(seqs, seq), append(epochs, st.term.Epoch)
					targets, leases = append(targets, target), append(leases, st.term.Installation)
					webhooks = append(webhooks, eventid.NewWebhook(seq))
				}
			}
		}
	}
	var steps []step
	if len(seqs) > 0 {
		steps = append(steps, step{sql: sqlDeliveries, args: []any{seqs, targets, leases, epochs, webhooks}})
	}
	if len(followed) > 0 {
		steps = append(steps, step{sql: sqlFollowUps, args: []any{followed, expiries, sealed}})
	}
	return steps
}
