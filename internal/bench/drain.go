package main

import (
	"context"
	"errors"
	"fmt"
)

// drainMin is what delivering must reach of a plain client's pace, with every
// outcome on the disk.
const drainMin = 0.5

// drainRows measures how fast what waits in the store is brought to a program that
// takes everything, beside a plain client that posts the same bodies to it, and how
// fast the store alone could take events through their whole life.
func drainRows(ctx context.Context, b *bench) ([]row, error) {
	times := fmt.Sprintf("%dx", b.count)
	all, err := b.benchmarks(ctx, "leasehold/delivery", "^BenchmarkDispatchSQLite$", "-benchtime", times)
	if err != nil {
		return nil, err
	}
	mixed, err := b.benchmarks(ctx, "leasehold/store/sqlite", "^BenchmarkMixed$", "-benchtime", times)
	if err != nil {
		return nil, err
	}
	limit, err := need(mixed, "", "events/s")
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, lanes := range []struct{ name, words string }{{"lanes=1", "1 conversation"}, {"lanes=64", "64 conversations"}} {
		rate, err1 := need(all, lanes.name, "events/s")
		plain, err2 := need(all, lanes.name, "plain/s")
		ratio, err3 := need(all, lanes.name, "ratio")
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, err
		}
		rows = append(rows, row{
			what: "from the store to a webhook, " + lanes.words, measured: count(rate) + " events/s",
			beside: fmt.Sprintf("a plain client's POSTs: %s/s", count(plain)),
			ratio:  fmt.Sprintf("%.2f", ratio), target: fmt.Sprintf(">= %.1f", drainMin), verdict: judge(ratio >= drainMin),
		}, row{
			what: "the same beside the store's own limit", measured: count(rate) + " events/s",
			beside: fmt.Sprintf("accepted, read and marked, to no program: %s/s", count(limit)), ratio: fmt.Sprintf("%.2f", rate/limit),
		})
	}
	return rows, nil
}
