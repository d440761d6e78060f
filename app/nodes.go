package app

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/internal/human"
	"leasehold/internal/loop"
)

func (p *program) nodesCommand() *cobra.Command {
	return p.group("nodes", "List the processes that hold sessions; drain one", nil, p.listNodes(), p.drainNode(), p.resumeNode())
}

func (p *program) listNodes() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the processes that hold sessions", Args: exactly(), Example: "  leasehold nodes list",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				page, err := a.Nodes(ctx)
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(page)
				}
				t := newTable("NODE", "INSTANCE", "SESSION", "VERSION", "SINCE", "WEIGHT", "LEASES", "DRAINING")
				for _, n := range page.Items {
					t.row(n.Name, n.Instance, n.Session, n.Version, human.Ago(n.OpenedAt), strconv.Itoa(n.Weight), strconv.Itoa(n.Leases), leavingWord(n))
				}
				t.write(p.Stdout)
				return nil
			})
		},
	}
}

// leavingWord says why a node is granted nothing; no: it is.
func leavingWord(n admin.Node) string {
	switch {
	case n.Drained:
		return "drained"
	case n.Draining:
		return "stopping"
	default:
		return "no"
	}
}

// drainPatience is how long a drain is watched: channels have two seconds to close, and
// deliveries in flight as long as a shutdown gives them.
const drainPatience = 30 * time.Second

func (p *program) drainNode() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "drain NODE", Short: "Have a node give up what it holds, while it lives on", Args: exactly("NODE"),
		Long: `Have a node give up its installations, politely, to the others, and hold nothing until
it is resumed: before work on its machine. It goes on answering, and stays drained over a
restart. NODE is its name or its instance, as leasehold nodes list shows them; the
command can be given on any node. It waits until nothing is left.

The only node is not drained without --force: every installation falls silent, and what
platforms do not keep for an absent bot is lost.`,
		Example: `  leasehold nodes drain b
  leasehold nodes resume b`,
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				n, err := a.DrainNode(ctx, args[0], force)
				if err != nil {
					return err
				}
				if n, err = awaitDrained(ctx, a, n); err != nil {
					return err
				}
				if p.json {
					return p.asJSON(n)
				}
				switch {
				case n.Leases > 0:
					p.line("%s is drained; %d installations are still to be given up, see leasehold nodes list.", args[0], n.Leases)
				default:
					p.line("%s is drained: it holds nothing, until leasehold nodes resume %s.", args[0], args[0])
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "although no other node takes over: all installations fall silent")
	return c
}

// awaitDrained looks until the node holds nothing, or has no session any more.
func awaitDrained(ctx context.Context, a *admin.Client, n admin.Node) (admin.Node, error) {
	for deadline := time.Now().Add(drainPatience); n.Leases > 0 && time.Now().Before(deadline); {
		if err := loop.Sleep(ctx, 200*time.Millisecond); err != nil {
			return n, err
		}
		page, err := a.Nodes(ctx)
		if err != nil {
			return n, err
		}
		n.Leases = 0
		for _, x := range page.Items {
			if x.Instance == n.Instance {
				n = x
			}
		}
	}
	return n, nil
}

func (p *program) resumeNode() *cobra.Command {
	return &cobra.Command{
		Use: "resume NODE", Short: "Have a drained node take its share again", Args: exactly("NODE"), Example: "  leasehold nodes resume b",
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				n, err := a.ResumeNode(ctx, args[0])
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(n)
				}
				p.line("%s is resumed: it is given its share again.", args[0])
				return nil
			})
		},
	}
}
