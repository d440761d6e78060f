package app

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/internal/fault"
)

func (p *program) switchTarget(on bool) *cobra.Command {
	c := &cobra.Command{Use: "disable NAME", Short: "Send nothing to one; what comes for it waits", Args: exactly("NAME")}
	verb := "off"
	if on {
		c.Use, c.Short, verb = "enable NAME", "Send to one again that is off, or that answered 410", "on"
	}
	c.Example = "  leasehold targets " + c.Name() + " app"
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
			v, err := a.SwitchTarget(ctx, args[0], on)
			if err != nil || p.json {
				return p.target(v, err)
			}
			p.line("%s is %s", v.Name, verb)
			return nil
		})
	}
	return c
}

func (p *program) removeTarget() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "remove NAME", Short: "Take one away", Args: exactly("NAME"), Example: "  leasehold targets remove app",
		Long: `Take a target away. One for which deliveries wait, or that installations name, is not
removed without --force: then what waits ends as dead letters, which can be replayed
once there is a target of that name again.`,
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				done, err := a.RemoveTarget(ctx, args[0], force)
				switch {
				case err != nil:
					return err
				case p.json:
					return p.asJSON(done)
				case done.Dead > 0:
					p.line("%s is removed; %d deliveries that waited for it are dead letters", done.Removed, done.Dead)
				default:
					p.line("%s is removed", done.Removed)
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "also when something waits for it, or names it")
	return c
}

func (p *program) testTarget() *cobra.Command {
	return &cobra.Command{
		Use: "test NAME", Short: "Send one a test event, and show what it answers", Args: exactly("NAME"), Example: "  leasehold targets test app",
		Long: `Send a target a test event of type system.test: signed like any other, stored nowhere,
and whatever state the target is in. The program that runs does it. It ends with 75
when the event was not taken.`,
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				t, err := a.TestTarget(ctx, args[0])
				if err != nil {
					return err
				}
				if p.json {
					if err := p.asJSON(t); err != nil {
						return err
					}
				}
				if !t.Taken {
					step := ""
					if t.NextStep != "" {
						step = "; " + t.NextStep
					}
					return fault.Errorf(fault.Temporary, "target %s did not take the test event %s: %s%s", t.Target, t.WebhookID, t.Reason, step)
				}
				if !p.json {
					p.line("%s took the test event %s in %.0f ms", t.Target, t.WebhookID, t.TookMS)
				}
				return nil
			})
		},
	}
}

// pullWait is how long one pull of the command waits.
const pullWait = 30 * time.Second

func (p *program) pullTarget() *cobra.Command {
	var most int
	var once bool
	c := &cobra.Command{
		Use: "pull NAME", Short: "Fetch the events of a target of type pull, a line of JSON each", Args: exactly("NAME"),
		Long: `Fetch the events of a target of type pull: each is written as a line of JSON, as a
webhook would get it, and acknowledged once it is written. What was not written when
the command ends is offered again. It goes on until it is ended, or with --once until
nothing waits any more.`,
		Example: "  leasehold targets pull batchjob | ./handle-lines\n  leasehold targets pull batchjob --once > events.jsonl",
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				wait := pullWait
				if once {
					wait = time.Second
				}
				for {
					got, err := a.Pull(ctx, args[0], most, wait)
					switch {
					case ctx.Err() != nil:
						return nil //nolint:nilerr // it was ended by hand: that is how it ends
					case err != nil:
						return err
					}
					if len(got) == 0 && once {
						return nil
					}
					for _, d := range got {
						if err := p.pulled(ctx, a, args[0], d); err != nil {
							return err
						}
					}
				}
			})
		},
	}
	c.Flags().IntVar(&most, "max", 1, "fetch up to this `number` at a time")
	c.Flags().BoolVar(&once, "once", false, "end when nothing waits")
	return c
}

// pulled writes an event and acknowledges it.
func (p *program) pulled(ctx context.Context, a *admin.Client, name string, d admin.Pulled) error {
	if _, err := p.Stdout.Write(append(d.Event, '\n')); err != nil {
		return fmt.Errorf("write the event: %w", err)
	}
	if err := p.written(); err != nil {
		return err
	}
	// Written is written, also when the command is being ended.
	_, err := a.Acknowledge(context.WithoutCancel(ctx), name, d.Lease)
	return err
}
