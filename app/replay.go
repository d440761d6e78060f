package app

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"leasehold/admin"
)

func (p *program) replayEvents() *cobra.Command {
	var r admin.Replay
	var since, until string
	c := &cobra.Command{
		Use: "replay [EVENT …]", Short: "Deliver events again, those that were taken, too",
		Long: `Deliver events again: those that are named or, for a program that was wrong for a
time, what one target was handed in that time. That is each event that was accepted
in the window, and each whose delivery ended in it, however long it had waited: was
delivered, given up or dropped. What waits is left alone. Each keeps its webhook id
and is marked with the header leasehold-replay.

A time is a time of day (the latest that has been), how long ago, a local date and
time, or RFC 3339.`,
		Example: `  leasehold events replay --since 02:00 --until 03:00 --to app
  leasehold events replay --since 90m --to app --dry-run     only say how many
  leasehold events replay evt_0000000000007`,
		RunE: func(c *cobra.Command, args []string) error {
			r.Events = args
			if err := filled(c, args); err != nil {
				return err
			}
			if err := window(&r, since, until, time.Now()); err != nil {
				return usage("%w; see %s --help", err, c.CommandPath())
			}
			return p.replay(c.Context(), r)
		},
	}
	flags := c.Flags()
	flags.StringVar(&since, "since", "", "from this `time` on")
	flags.StringVar(&until, "until", "", "up to this `time`; now, when left out")
	flags.StringVar(&r.Target, "to", "", "to this target `name`")
	flags.StringVar(&r.Installation, "installation", "", "only of this installation `id`")
	flags.StringVar(&r.Type, "type", "", "only of this event `type`")
	flags.BoolVar(&r.DryRun, "dry-run", false, "only say how many it would be")
	return c
}

// window completes r with its times, and refuses a mixture of events and a window.
func window(r *admin.Replay, since, until string, now time.Time) (err error) {
	named := len(r.Events) > 0
	switch filtered := since != "" || until != "" || r.Installation != "" || r.Type != ""; {
	case named && filtered:
		return fmt.Errorf("name events, or select them with --since: not both")
	case named:
		return nil
	case since == "" || r.Target == "":
		return fmt.Errorf("name events, or say --since TIME --to TARGET")
	}
	if r.Since, err = moment(since, now, time.Time{}); err != nil {
		return fmt.Errorf("--since: %w", err)
	}
	if r.Since.After(now) {
		return fmt.Errorf("--since %s is still to come", since)
	}
	if r.Since.IsZero() { // which says nothing in a request, and nothing is older than this
		r.Since = time.Unix(0, 0).UTC()
	}
	if until == "" {
		return nil
	}
	if r.Until, err = moment(until, now, r.Since); err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	if !r.Since.Before(r.Until) {
		return fmt.Errorf("--until %s is not after --since %s", r.Until.Format(time.RFC3339), r.Since.Format(time.RFC3339))
	}
	return nil
}

func (p *program) replay(ctx context.Context, r admin.Replay) error {
	n := writing
	if r.DryRun {
		n = reading
	}
	return p.reach(ctx, n, func(ctx context.Context, a *admin.Client) error {
		done, err := a.ReplayEvents(ctx, r)
		if err != nil {
			if done.Count > 0 {
				p.hint("%s wait again already", counted(done.Count, "delivery", "deliveries"))
			}
			return err
		}
		if p.json {
			return p.asJSON(done)
		}
		p.line("%s", replayed(r, done))
		return nil
	})
}

// replayed says what a replay did, with the window as it was understood.
func replayed(r admin.Replay, done admin.Replayed) string {
	text := counted(done.Count, "delivery", "deliveries")
	if r.Target != "" {
		text += " to " + r.Target
	}
	if !r.Since.IsZero() {
		text += fmt.Sprintf(" from %s until %s", r.Since.Format(time.RFC3339), done.Until.In(r.Since.Location()).Format(time.RFC3339))
	}
	if r.DryRun {
		text += ": would wait again"
	} else {
		text += ": wait again"
	}
	if done.Waiting > 0 {
		text += fmt.Sprintf("; %d waited anyway", done.Waiting)
	}
	return text
}

// counted is a number with its noun.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
