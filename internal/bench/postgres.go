package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"leasehold/engine"
)

const (
	// restTicks of five seconds are a minute: each regular thing happens in it.
	restTicks = 12
	// fewerTimes is by how much less than an update per lease a tick must cost.
	fewerTimes = 100
)

// postgresRows measures what ten thousand installations at rest cost a Postgres,
// beside an update per lease on the same server.
func postgresRows(ctx context.Context, b *bench) ([]row, error) {
	if err := os.Chmod(b.dir, 0o711); err != nil { // the server is another user, below it
		return nil, fmt.Errorf("let the server in: %w", err)
	}
	all, err := b.benchmarks(ctx, "leasehold/store/postgres", "^BenchmarkRest$", "-count", "1", "-benchtime", fmt.Sprintf("%dx", restTicks), "-timeout", "1h")
	if err != nil {
		return nil, err
	}
	statements, err1 := need(all, "", "statements/tick")
	wal, err2 := need(all, "", "wal-B/tick")
	otherStatements, err3 := need(all, "", "other-statements/tick")
	otherWAL, err4 := need(all, "", "other-wal-B/tick")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	hourly := float64(time.Hour / engine.DefaultTiming().RenewEvery)
	otherHourly := float64(time.Hour / tickEvery)
	beside := func(what, measured, other string, ratio float64) row {
		return row{
			what: what + ", 10,000 installations on Postgres", measured: measured, beside: "an update per lease: " + other, ratio: fmt.Sprintf("%.2g", ratio),
		}
	}
	promised := func(r row, ratio float64) row {
		r.target, r.verdict = fmt.Sprintf("<= 1/%d", fewerTimes), judge(ratio*fewerTimes <= 1)
		return r
	}
	return []row{
		promised(beside("statements in a tick at rest", fmt.Sprintf("%.1f", statements), count(otherStatements), statements/otherStatements), statements/otherStatements),
		promised(beside("log in a tick at rest", size(wal), size(otherWAL), wal/otherWAL), wal/otherWAL),
		beside("log in an hour at rest", size(wal*hourly), size(otherWAL*otherHourly), wal*hourly/(otherWAL*otherHourly)),
	}, nil
}
