package app

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"leasehold/admin"
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
				t := newTable("DELIVERY", "EVENT", "INSTALLATION", "TARGET", "STATE", "ATTEMPTS", "NEXT", "LAST ERROR")
				for _, d := range page.Items {
					t.row(d.ID, d.EventID, d.Installation, d.Target, d.State, strconv.Itoa(d.Attempts), in(d.NextAttempt), short(d.LastError, 80))
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
