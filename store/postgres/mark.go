package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"leasehold/channel"
	"leasehold/delivery"
)

// sqlMark is fenced as sqlAccept is, by owner and epoch. $1 to $3 are the terms, $4
// to $11 the marks, which point at them. The answer has a row for each that was
// written.
const (
	markRows = `WITH clock AS MATERIALIZED (SELECT leasehold_now() AS now),
k AS MATERIALIZED (SELECT n, id, epoch, owner FROM unnest($1::text[], $2::bigint[], $3::text[]) WITH ORDINALITY AS k(id, epoch, owner, n)),
f AS MATERIALIZED (SELECT k.n, l.id, l.epoch FROM lease l JOIN k ON k.id = l.id AND k.epoch = l.epoch AND k.owner = l.owner
 WHERE EXISTS (SELECT 1 FROM session s WHERE s.session_id = k.owner) ORDER BY l.id FOR SHARE OF l),
held AS MATERIALIZED (SELECT count(*) AS n FROM f),
m AS MATERIALIZED (SELECT m.n, f.id, f.epoch, m.seq, m.target, m.state, m.delta, m.wait, m.error
  FROM held CROSS JOIN unnest($4::bigint[], $5::bigint[], $6::text[], $7::smallint[], $8::integer[], $9::bigint[], $10::text[]) WITH ORDINALITY
         AS m(k, seq, target, state, delta, wait, error, n)
  JOIN f ON f.n = m.k WHERE held.n > 0)`
	markUpdate = `UPDATE delivery d SET state = m.state, attempts = greatest(0, d.attempts + m.delta), epoch = m.epoch, last_error = m.error,
       next_attempt = CASE WHEN m.state = 0 THEN clock.now + m.wait ELSE 0 END, ended_at = CASE WHEN m.state = 0 THEN 0 ELSE clock.now END
  FROM m, clock WHERE d.event_seq = m.seq AND d.target = m.target AND d.lease_id = m.id AND d.state = 0
RETURNING m.n`
	sqlMark = markRows + "\n" + markUpdate
)

// marks is a set of outcomes in a queue.
type marks struct {
	all     []delivery.Mark
	answers []error
	done    chan error
}

// Mark implements delivery.Outbox.
func (s *Store) Mark(ctx context.Context, all []delivery.Mark) ([]error, error) {
	if len(all) == 0 {
		return nil, nil
	}
	i := &marks{all: all, done: make(chan error, 1)}
	if err := s.writer(all[0].Term.Installation).add(ctx, i, i.done); err != nil {
		return nil, failed("mark deliveries", err)
	}
	return i.answers, nil
}

func (i *marks) size() (rows, bytes int) {
	for n := range i.all {
		r, b := i.all[n].Size()
		rows, bytes = rows+r, bytes+b
	}
	return rows, bytes
}

func (i *marks) settle(err error) { i.done <- err }

// marked is a mark with the place of its answer.
type marked struct {
	*delivery.Mark
	answer *error
}

// writeMarks commits sets of outcomes. One statement writes a row once, so that of
// two marks of one delivery the second goes into a next one.
func (s *Store) writeMarks(ctx context.Context, sets []*marks) error {
	var left []marked
	for _, set := range sets {
		set.answers = make([]error, len(set.all))
		for n := range set.all {
			left = append(left, marked{&set.all[n], &set.answers[n]})
		}
	}
	for len(left) > 0 {
		var now, later []marked
		taken := map[[2]any]bool{}
		for _, m := range left {
			key := [2]any{m.Seq, m.Target}
			if taken[key] {
				later = append(later, m)
				continue
			}
			taken[key] = true
			now = append(now, m)
		}
		if err := s.writeOnce(ctx, now); err != nil {
			return err
		}
		left = later
	}
	return nil
}

func (s *Store) writeOnce(ctx context.Context, all []marked) error {
	slices.SortStableFunc(all, func(a, b marked) int { return strings.Compare(a.Term.Installation, b.Term.Installation) })
	var fences fences
	keys, seqs, waits := make([]int64, 0, len(all)), make([]int64, 0, len(all)), make([]int64, 0, len(all))
	targets, errs := make([]string, 0, len(all)), make([]string, 0, len(all))
	states, deltas := make([]int16, 0, len(all)), make([]int32, 0, len(all))
	for _, m := range all {
		*m.answer = delivery.ErrMarkFenced
		delta := int32(-m.Back)
		if m.Count {
			delta++
		}
		keys, seqs, waits = append(keys, fences.number(m.Term)), append(seqs, m.Seq), append(waits, m.Wait.Milliseconds())
		targets, errs = append(targets, m.Target), append(errs, plain(m.Error))
		states, deltas = append(states, int16(m.State)), append(deltas, delta)
	}
	args := append(fences.args(), keys, seqs, targets, states, deltas, waits, errs)
	scan := func(rows pgx.Rows) error {
		var n int
		err := rows.Scan(&n)
		if err == nil {
			*all[n-1].answer = nil
		}
		return err
	}
	steps, err := replying(all, args, scan)
	if err != nil {
		return err
	}
	if steps == nil {
		steps = []step{{sql: sqlMark, args: args, scan: scan}}
	}
	return s.atomically(ctx, s.pool, steps...)
}

// fences are the terms of one statement, each once, compared by owner and epoch.
type fences struct {
	ids, owners []string
	epochs      []int64
	numbers     map[channel.Term]int64
}

// number is the term's place, from 1 as the database counts.
func (f *fences) number(t channel.Term) int64 {
	t.Run = 0
	if n, known := f.numbers[t]; known {
		return n
	}
	if f.numbers == nil {
		f.numbers = map[channel.Term]int64{}
	}
	f.ids, f.epochs, f.owners = append(f.ids, t.Installation), append(f.epochs, t.Epoch), append(f.owners, t.Owner)
	n := int64(len(f.ids))
	f.numbers[t] = n
	return n
}

func (f *fences) args() []any { return []any{f.ids, f.epochs, f.owners} }
