// Package heartbeat is a canary: a channel type without a platform that emits an
// event every interval, to prove the way from a channel to the target.
//
// It promises one event per interval and sequence number: a crash between two
// events repeats the id of the one that was not stored, and a restart within an
// interval emits none of its own. It says nothing about any network.
package heartbeat

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"leasehold/channel"
	"leasehold/internal/loop"
)

// Spec is the type, under the name heartbeat.
//
//nolint:gochecknoglobals // a table entry, never changed
var Spec = channel.Define(channel.Definition[Config]{
	Name:    "heartbeat",
	Summary: "A canary that emits an event every interval and needs no network.",
	Offline: true,
	Default: func() Config { return Config{Every: channel.Duration(time.Minute)} },
	New:     newCanary,
})

// Config is the type's part of an installation.
type Config struct {
	Every channel.Duration `json:"every" channel:"connection" default:"1m" doc:"The time between two events, at least 1s."`
}

// shortest keeps a mistyped unit from filling the disk.
const shortest = time.Second

// canary is a Channel: one term.
type canary struct{ every time.Duration }

var _ channel.Channel = (*canary)(nil)

func newCanary(_ context.Context, c Config) (channel.Channel, error) {
	if c.Every.Std() < shortest {
		return nil, fmt.Errorf("every: want at least %s, not %s", shortest, c.Every.Std())
	}
	return &canary{every: c.Every.Std()}, nil
}

// position is the cursor: the last event that was stored.
type position struct {
	Seq int64     `json:"seq"`
	At  time.Time `json:"at"`
}

// Run is ready at once and emits until ctx ends.
func (c *canary) Run(ctx context.Context, link *channel.Link) error {
	last := resume(link)
	link.Ready(channel.Info{})
	for {
		if loop.Sleep(ctx, c.untilNext(last, time.Now())) != nil {
			return nil //nolint:nilerr // ctx ended, which is no error
		}
		next := position{Seq: last.Seq + 1, At: time.Now().UTC()}
		// Not ctx: a commit that has begun is worth two seconds of goodbye.
		if err := link.Accept(context.WithoutCancel(ctx), next.batch()); err != nil {
			return fmt.Errorf("store heartbeat %d: %w", next.Seq, err)
		}
		link.Alive()
		last = next
	}
}

// resume reads the cursor. One that another type has left counts as none, but the
// numbers begin at the time of day then: an id that was used before would be taken
// for a repeat, and never be seen.
func resume(link *channel.Link) position {
	cursor := link.Cursor()
	if cursor == nil {
		return position{}
	}
	var last position
	if err := json.Unmarshal(cursor, &last); err != nil || last.Seq < 1 {
		link.Notice("cursor", "the stored position is not a heartbeat's; the numbers begin anew")
		return position{Seq: time.Now().Unix()}
	}
	return last
}

// untilNext is the wait for the next event: none at first, and none when the clock
// was set back past the last event.
func (c *canary) untilNext(last position, now time.Time) time.Duration {
	since := now.Sub(last.At)
	if last.At.IsZero() || since < 0 {
		return 0
	}
	return c.every - since
}

func (p position) batch() channel.Batch {
	cursor, err := json.Marshal(p)
	if err != nil {
		panic(err) // a number and a time of this century
	}
	n := strconv.FormatInt(p.Seq, 10)
	return channel.Batch{
		Events: []channel.Event{{
			ID: "heartbeat-" + n, Type: "heartbeat", Time: p.At, Text: "heartbeat " + n, Body: "heartbeat " + n, Raw: json.RawMessage(`{"seq":` + n + `}`),
		}},
		Cursor: cursor,
	}
}
