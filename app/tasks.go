package app

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/internal/human"
)

func (p *program) tasksCommand() *cobra.Command {
	return p.group("tasks", "List maintenance tasks, and run one now", nil, p.listTasks(), p.runTask())
}

func (p *program) listTasks() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tasks and how they went", Args: exactly(), Example: "  leasehold tasks list",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				page, err := a.Tasks(ctx)
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(page)
				}
				t := newTable("TASK", "LAST RUN", "LAST SUCCESS", "NEXT RUN", "FAILURES", "NODE", "RESULT")
				for _, x := range page.Items {
					result := x.Result
					if x.LastError != "" {
						result = x.LastError
					}
					t.row(x.Name, human.Ago(x.LastStart), human.Ago(x.LastSuccess), human.In(x.NextRun), strconv.Itoa(x.ConsecutiveFailures), x.Node, human.Short(result, 80))
				}
				t.write(p.Stdout)
				return nil
			})
		},
	}
}

func (p *program) runTask() *cobra.Command {
	return &cobra.Command{
		Use: "run TASK", Short: "Run a task now and wait for it", Args: exactly("TASK"), Example: "  leasehold tasks run sweeper",
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				t, err := a.RunTask(ctx, args[0])
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(t)
				}
				switch {
				case t.Result != "":
				case t.Name == pingTask: // it keeps no record of what it said
					t.Result = "done"
				default:
					t.Result = "nothing to do"
				}
				p.line("%s: %s", t.Name, t.Result)
				return nil
			})
		},
	}
}
