package postgres

import (
	"context"
	"slices"
	"strings"

	"leasehold/engine"
	"leasehold/store/internal/record"
)

// sqlStatus is fenced as sqlAccept is, by owner and epoch.
const sqlStatus = `WITH
k AS MATERIALIZED (SELECT n, id, epoch, owner FROM unnest($1::text[], $2::bigint[], $3::text[]) WITH ORDINALITY AS k(id, epoch, owner, n)),
f AS MATERIALIZED (SELECT k.n, l.id, l.epoch FROM lease l JOIN k ON k.id = l.id AND k.epoch = l.epoch AND k.owner = l.owner
 WHERE EXISTS (SELECT 1 FROM session s WHERE s.session_id = k.owner) ORDER BY l.id FOR SHARE OF l),
held AS MATERIALIZED (SELECT count(*) AS n FROM f)
INSERT INTO link_status(installation_id, epoch, state, reason, detail, since, attempts, next_attempt, last_ready, last_event)
SELECT s.installation, f.epoch, s.state, s.reason, s.detail, s.since, s.attempts, s.next_attempt, s.last_ready, s.last_event
  FROM held CROSS JOIN unnest($4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::integer[], $11::bigint[], $12::bigint[], $13::bigint[])
         AS s(k, installation, state, reason, detail, since, attempts, next_attempt, last_ready, last_event)
  JOIN f ON f.n = s.k
 WHERE held.n > 0 AND (s.installation = f.id OR EXISTS (SELECT 1 FROM installation i WHERE i.id = s.installation AND i.via = f.id))
 ORDER BY s.installation
ON CONFLICT (installation_id) DO UPDATE SET epoch = excluded.epoch, state = excluded.state, reason = excluded.reason, detail = excluded.detail,
       since = excluded.since, attempts = excluded.attempts, next_attempt = excluded.next_attempt, last_ready = excluded.last_ready, last_event = excluded.last_event
 WHERE link_status.epoch <= excluded.epoch`

// states is a set of link states in a queue.
type states struct {
	all  []engine.TermStatus
	done chan error
}

// SaveStatus implements engine.Store. A state of an installation that does not
// ride on the term's is skipped like a fenced one.
func (s *Store) SaveStatus(ctx context.Context, all []engine.TermStatus) error {
	if len(all) == 0 {
		return nil
	}
	i := &states{all: all, done: make(chan error, 1)}
	return failed("save link states", s.writer(all[0].Term.Installation).add(ctx, i, i.done))
}

func (i *states) size() (rows, bytes int) { return len(i.all), 0 }
func (i *states) settle(err error)        { i.done <- err }

// writeStates commits sets of states. One statement writes a row once: of several
// states of one installation that one term tells, the last one counts. Those that
// different terms tell are told apart by their fences only, so each of these has a
// statement of its own.
func (s *Store) writeStates(ctx context.Context, sets []*states) error {
	var left []engine.TermStatus
	for _, set := range sets {
		left = append(left, set.all...)
	}
	for len(left) > 0 {
		var now, later []engine.TermStatus
		taken := map[string]int{}
		for _, l := range left {
			id := of(l)
			n, told := taken[id]
			switch {
			case !told:
				taken[id] = len(now)
				now = append(now, l)
			case now[n].Term == l.Term:
				now[n] = l
			default:
				later = append(later, l)
			}
		}
		if err := s.writeEach(ctx, now); err != nil {
			return err
		}
		left = later
	}
	return nil
}

// of is whose state it is.
func of(l engine.TermStatus) string {
	if l.Status.Installation == "" {
		return l.Term.Installation
	}
	return l.Status.Installation
}

func (s *Store) writeEach(ctx context.Context, all []engine.TermStatus) error {
	slices.SortStableFunc(all, func(a, b engine.TermStatus) int { return strings.Compare(a.Term.Installation, b.Term.Installation) })
	var fences fences
	var keys, since, next, ready, heard []int64
	var ids, names, reasons, details []string
	var attempts []int32
	for _, l := range all {
		keys, ids = append(keys, fences.number(l.Term)), append(ids, of(l))
		names, reasons, details = append(names, string(l.Status.State)), append(reasons, plain(l.Status.Reason)), append(details, plain(l.Status.Detail))
		since, attempts = append(since, record.Millis(l.Status.Since)), append(attempts, int32(l.Status.Attempts))
		next, ready, heard = append(next, record.Millis(l.Status.NextAttempt)), append(ready, record.Millis(l.Status.LastReady)), append(heard, record.Millis(l.Status.LastEvent))
	}
	return s.atomically(ctx, s.pool, step{
		sql: sqlStatus, args: append(fences.args(), keys, ids, names, reasons, details, since, attempts, next, ready, heard),
	})
}
