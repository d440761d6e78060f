package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/internal/fault"
	"leasehold/internal/human"
)

func (p *program) statusCommand() *cobra.Command {
	var check, ready, metrics bool
	c := &cobra.Command{
		Use: "status", Short: "Show how everything is", Args: exactly(),
		Long: `Show the running program, its installations, targets and tasks, what is wrong
and what to do about it. It ends with 3 when nothing runs, and with 1 when what
runs does not answer.`,
		Example: `  leasehold status
  leasehold status --check      end with 1 unless all is well
  leasehold status --ready      end with 1 unless this node can work; for health checks`,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case ready:
				return p.readiness(c.Context())
			case metrics:
				return p.metrics(c.Context())
			}
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error { return p.status(ctx, a, check) })
		},
	}
	c.Flags().BoolVar(&check, "check", false, "end with 1 unless all is well")
	c.Flags().BoolVar(&ready, "ready", false, "only ask whether this node can work")
	c.Flags().BoolVar(&metrics, "metrics", false, "the running program's metrics, in the text format of Prometheus")
	c.MarkFlagsMutuallyExclusive("check", "ready", "metrics")
	return c
}

// metrics prints what a scraper of /metrics gets.
func (p *program) metrics(ctx context.Context) error {
	if p.json {
		return usage("--metrics has a format of its own; leave --json out")
	}
	return p.reach(ctx, running, func(ctx context.Context, a *admin.Client) error {
		page, err := a.Metrics(ctx)
		if err != nil {
			return err
		}
		_, err = p.Stdout.Write(page)
		return err //nolint:wrapcheck // it is told as every answer's
	})
}

// readiness asks the running program and nobody else: what a store holds says
// nothing about a node.
func (p *program) readiness(ctx context.Context) error {
	return p.reach(ctx, running, func(ctx context.Context, a *admin.Client) error {
		if err := a.Ready(ctx); err != nil {
			return &exitError{fault.ExitFailed, err}
		}
		if p.json {
			return p.asJSON(map[string]string{"status": "ready"})
		}
		p.line("ready")
		return nil
	})
}

func (p *program) status(ctx context.Context, a *admin.Client, check bool) error {
	o, err := a.Status(ctx)
	if err != nil {
		return err
	}
	if p.json {
		if err := p.asJSON(o); err != nil {
			return err
		}
	} else {
		p.showStatus(o)
	}
	switch {
	case o.Mode == admin.Stopped:
		return &exitError{code: fault.ExitNotRunning}
	case o.Mode == admin.Unreachable, check && !o.Well:
		return &exitError{code: fault.ExitFailed}
	}
	return nil
}

func (p *program) showStatus(o admin.Overview) {
	p.line("%s", headline(o))
	if len(o.Installations) > 0 {
		p.line("")
		p.installationTable(o.Installations)
	}
	if len(o.Targets) > 0 {
		p.line("")
		t := newTable("TARGET", "TYPE", "STATE", "SINCE", "NEXT PROBE", "REASON")
		for _, x := range o.Targets {
			t.row(x.Name, x.Type, x.State, human.Ago(x.Since), human.In(x.NextProbe), human.Short(x.Reason, 80))
		}
		p.painted(t, 2).write(p.Stdout)
	}
	if len(o.Trouble) > 0 {
		p.line("")
	}
	for _, x := range o.Trouble {
		p.line("%s", troubleLine(x))
	}
	if o.Config != nil && len(o.Config.Restart) > 0 {
		p.line("config has keys that wait for a restart: %s", strings.Join(o.Config.Restart, ", "))
	}
	if len(o.Installations) == 0 && o.Mode == admin.Running {
		p.line("There is no installation yet; write an [[installation]] into leasehold.toml, or see leasehold installations put --help")
	}
}

// troubleLine says what is not well, and what to do about it.
func troubleLine(x admin.Trouble) string {
	line := x.What + " is " + strings.ReplaceAll(x.State, "_", " ")
	if x.Reason != "" {
		line += " (" + human.Printable(x.Reason) + ")"
	}
	if x.NextStep != "" {
		line += ": " + x.NextStep
	}
	return line
}

// headline is the state of the box in one line.
func headline(o admin.Overview) string {
	installations := fmt.Sprintf("%d installations", o.Totals.Installations)
	if o.Totals.Installations == 1 {
		installations = "1 installation"
	}
	counts := fmt.Sprintf("%s, %d deliveries wait, %d dead", installations, o.Totals.Deliveries["pending"], o.Totals.Deliveries["dead"])
	switch n := o.Totals.Messages; {
	case n == 1:
		counts += ", 1 message waits"
	case n > 1:
		counts += fmt.Sprintf(", %d messages wait", n)
	}
	switch o.Mode {
	case admin.Running:
		well := "all is well"
		if !o.Well {
			well = fmt.Sprintf("%d not well", len(o.Trouble))
		}
		if n := o.Node.Dropped; n > 0 {
			counts += fmt.Sprintf(", %d dropped since the start", n)
		}
		return fmt.Sprintf("leasehold %s runs as %s (process %d, for %s): %s; %s",
			o.Version.Version, o.Node.Name, o.Node.PID, strings.TrimSuffix(human.Ago(o.Node.Started), " ago"), well, counts)
	case admin.Passive:
		return "leasehold waits to take over from " + o.Holder + "; " + counts
	case admin.Unreachable:
		return "leasehold does not answer, though " + o.Holder + " holds the store; " + counts + "; restart that process"
	default:
		return "leasehold is not running; " + counts + "; start it with leasehold run"
	}
}
