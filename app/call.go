package app

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"leasehold/admin"
)

func (p *program) callCommand() *cobra.Command {
	return &cobra.Command{
		Use: "call INSTALLATION METHOD [JSON]", Short: "Call the platform's own API as an installation",
		Long: `Call a method of the platform's API with an installation's credentials, which stay
where they are, and write what it answers. It is made at once, through the connection
that is held, and never twice; nothing of it is stored, but the audit says who called
what. JSON are the method's arguments; - reads them from stdin.`,
		Example: `  leasehold call acme chat.getPermalink '{"channel":"C02ABC","message_ts":"17"}'
  leasehold call acme users.list
  jq -n '{user: "U1"}' | leasehold call acme users.info -`,
		Args: callArgs,
		RunE: func(c *cobra.Command, args []string) error {
			call := admin.Call{Method: args[1]}
			if len(args) > 2 {
				params := args[2]
				var err error
				if params == "-" {
					if params, err = p.stdin(); err != nil {
						return err
					}
				}
				if !json.Valid([]byte(params)) {
					return usage("the arguments of the method are no JSON")
				}
				call.Params = json.RawMessage(params)
			}
			return p.reach(c.Context(), running, func(ctx context.Context, a *admin.Client) error {
				answer, err := a.Call(ctx, args[0], call)
				if err != nil {
					return err
				}
				return p.asJSON(answer.Result) // with --json, too: it is what was asked for
			})
		},
	}
}

func callArgs(c *cobra.Command, args []string) error {
	if len(args) < 2 || len(args) > 3 {
		return usage("%s takes INSTALLATION METHOD [JSON] (got %d arguments; put the JSON in quotes); see %s --help", c.CommandPath(), len(args), c.CommandPath())
	}
	if err := whole(c, args); err != nil {
		return err
	}
	return filled(c, args)
}
