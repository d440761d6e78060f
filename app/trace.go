package app

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/internal/human"
)

func (p *program) traceCommand() *cobra.Command {
	return &cobra.Command{
		Use: "trace ID", Short: "Tell the whole way of an event, or of a message", Args: exactly("ID"),
		Long: `Tell what happened to an event, in the order of time: when the platform says that
it happened, when it was stored, what became of each of its deliveries, what was
replied, and what is still to come. ID is that of the event or of one of its deliveries; or that of a
message, whose way to the platform is told.`,
		Example: "  leasehold trace evt_0000000000007\n  leasehold trace msg_… --json\n  leasehold trace out_…",
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				t, err := a.Trace(ctx, args[0])
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(t)
				}
				p.timeline(t)
				return nil
			})
		},
	}
}

// timeline writes a trace for people.
func (p *program) timeline(t admin.Trace) {
	if m := t.Message; m != nil {
		p.line("%s, a message of installation %s", m.ID, human.Printable(m.Installation))
	} else {
		p.line("%s, a %s of installation %s", t.Event.ID, human.Printable(t.Event.Type), human.Printable(t.Event.Installation))
	}
	p.line("")
	rows := newTable("TIME", "STEP", "TARGET", "DELIVERY", "ATTEMPTS", "")
	for _, s := range t.Steps {
		at := "-"
		switch {
		case s.What == "waits" && !s.At.After(time.Now()):
			at = "now"
		case !s.At.IsZero():
			at = s.At.UTC().Format("2006-01-02 15:04:05.000Z")
		}
		rows.row(at, s.What, s.Target, s.Delivery, count(s.Attempts), s.Detail)
	}
	p.painted(rows, 1).write(p.Stdout)
	if t.Event != nil && len(t.Event.Deliveries) == 0 {
		p.line("")
		p.line("It goes to no target: none takes a %s of %s.", human.Printable(t.Event.Type), human.Printable(t.Event.Installation))
	}
}
