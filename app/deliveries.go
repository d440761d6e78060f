package app

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/internal/human"
)

func (p *program) deliveriesCommand() *cobra.Command {
	return p.group("deliveries", "List deliveries, replay or drop them", nil,
		p.listDeliveries(), p.showDelivery(),
		p.pickDeliveries("replay", "Deliver dead or dropped ones again, with the same webhook id", "dead, or dropped", (*admin.Client).Replay),
		p.pickDeliveries("drop", "Give up dead ones, or those that wait", "dead, or pending", (*admin.Client).Drop))
}

func (p *program) listDeliveries() *cobra.Command {
	var installation, target, state, before string
	var limit int
	c := &cobra.Command{
		Use: "list", Short: "List deliveries, those of the newest events first", Args: exactly(),
		Example: "  leasehold deliveries list --state dead\n  leasehold deliveries list --target app --json",
		RunE: func(c *cobra.Command, _ []string) error {
			q := filter("installation", installation, "target", target, "state", state, "before", before, "limit", strconv.Itoa(limit))
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				page, err := a.Deliveries(ctx, q)
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(page)
				}
				stopped, err := p.stopped(ctx, a, page.Items)
				if err != nil {
					return err
				}
				t := newTable("DELIVERY", "EVENT", "INSTALLATION", "TARGET", "STATE", "ATTEMPTS", "NEXT", "LAST ERROR")
				for _, d := range page.Items {
					t.row(d.ID, d.EventID, d.Installation, d.Target, d.State, strconv.Itoa(d.Attempts), next(d, stopped), human.Short(d.LastError, 80))
				}
				p.painted(t, 4).write(p.Stdout)
				p.more(page.Next)
				return nil
			})
		},
	}
	c.Flags().StringVar(&installation, "installation", "", "only of this installation `id`")
	c.Flags().StringVar(&target, "target", "", "only to this target `name`")
	c.Flags().StringVar(&state, "state", "", "only those that are pending, delivered, dead or dropped")
	pageFlags(c, &before, &limit)
	return c
}

// due reports whether nothing but its target keeps a delivery.
func due(d admin.Delivery) bool {
	return d.State == "pending" && !d.NextAttempt.IsZero() && !d.NextAttempt.After(time.Now())
}

// stopped are the targets to which nothing goes now, and why in a word. It asks
// only when one of the deliveries is due.
func (p *program) stopped(ctx context.Context, a *admin.Client, items []admin.Delivery) (map[string]string, error) {
	if !slices.ContainsFunc(items, due) {
		return nil, nil //nolint:nilnil // reading from none is fine
	}
	o, err := a.Status(ctx)
	if err != nil {
		return nil, err
	}
	states := map[string]string{}
	for _, t := range o.Targets {
		if t.State != "ok" && t.State != "failing" {
			states[t.Name] = t.State
		}
	}
	return states, nil
}

// next is when a delivery is tried again: its own time or, when that has come, what
// keeps its target from being called.
func next(d admin.Delivery, stopped map[string]string) string {
	if state := stopped[d.Target]; state != "" && due(d) {
		return "target " + state
	}
	return human.In(d.NextAttempt)
}

func (p *program) showDelivery() *cobra.Command {
	return &cobra.Command{
		Use: "show DELIVERY", Short: "Show one", Args: exactly("DELIVERY"), Example: "  leasehold deliveries show msg_…",
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				d, err := a.Delivery(ctx, args[0])
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(d)
				}
				p.delivery(d)
				return nil
			})
		},
	}
}

func (p *program) delivery(d admin.Delivery) {
	p.fields("delivery", d.ID, "event", d.EventID, "installation", d.Installation, "target", d.Target, "state", d.State,
		"attempts", count(d.Attempts), "next attempt", stamp(d.NextAttempt), "last error", d.LastError, "delivered", stamp(d.DeliveredAt))
}

// pickDeliveries is replay or drop: of those named, or of all that a filter selects.
func (p *program) pickDeliveries(verb, about, states string, do func(*admin.Client, context.Context, admin.Pick) (admin.Outcome, error)) *cobra.Command {
	var pick admin.Pick
	c := &cobra.Command{
		Use: verb + " [DELIVERY …]", Short: about,
		Example: "  leasehold deliveries " + verb + " msg_…\n  leasehold deliveries " + verb + " --target app     all dead ones of that target",
		RunE: func(c *cobra.Command, args []string) error {
			pick.IDs = args
			filtered := pick.Installation != "" || pick.Target != "" || pick.State != ""
			if filtered == (len(args) > 0) {
				return usage("name deliveries, or select them with --target, --installation or --state; see %s --help", c.CommandPath())
			}
			if err := filled(c, args); err != nil {
				return err
			}
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				done, err := do(a, ctx, pick)
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(done)
				}
				p.line("%d deliveries: %s", done.Count, map[string]string{"replay": "wait again", "drop": "dropped"}[verb])
				if done.More {
					p.hint("there are more; run it again")
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&pick.Installation, "installation", "", "all of this installation `id`")
	c.Flags().StringVar(&pick.Target, "target", "", "all to this target `name`")
	c.Flags().StringVar(&pick.State, "state", "", "all in this state: "+states+" (default dead)")
	return c
}
