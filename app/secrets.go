package app

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/internal/human"
)

func (p *program) secretsCommand() *cobra.Command {
	return p.group("secrets", "Secrets in the store, for { secret = \"NAME\" }", nil, p.listSecrets(), p.setSecret(), p.removeSecret())
}

func (p *program) listSecrets() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the names of the secrets, never a value", Args: exactly(), Example: "  leasehold secrets list",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				page, err := a.Secrets(ctx)
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(page)
				}
				t := newTable("SECRET", "SET")
				for _, s := range page.Items {
					t.row(s.Name, human.Ago(s.UpdatedAt))
				}
				t.write(p.Stdout)
				return nil
			})
		},
	}
}

func (p *program) setSecret() *cobra.Command {
	return &cobra.Command{
		Use: "set NAME", Short: "Give a secret a value, which is asked for or read from standard input", Args: exactly("NAME"),
		Long: `Give a secret a value. At a terminal it is asked for and not shown; otherwise it is
what standard input holds, without the line end behind it. It is kept encrypted in the
store, and nothing shows it again. The config refers to it as { secret = "NAME" }. What
uses it connects again with it, at once, and nothing else does.`,
		Example: `  leasehold secrets set acme-bot
  leasehold secrets set acme-bot < token.txt`,
		RunE: func(c *cobra.Command, args []string) error {
			value, err := p.secretValue(c.Context(), args[0])
			if err != nil {
				return err
			}
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				done, err := a.SetSecret(ctx, args[0], value)
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(done)
				}
				p.line("secret %s is set", done.Name)
				if len(done.Changed) > 0 {
					p.line("connecting again: %s", strings.Join(done.Changed, ", "))
				} else {
					p.hint(`refer to it as { secret = %q }`, done.Name)
				}
				return nil
			})
		},
	}
}

// secretMax is one byte more than the handlers take.
const secretMax = 64<<10 + 1

// secretValue is what a person types, or what standard input holds.
func (p *program) secretValue(ctx context.Context, name string) (value string, err error) {
	if p.typing() {
		value, err = p.ask(ctx).secret(ctx, name)
	} else {
		var b []byte
		b, err = io.ReadAll(io.LimitReader(p.Stdin, secretMax))
		value = strings.TrimRight(string(b), "\r\n")
	}
	if err != nil {
		return "", fmt.Errorf("read the value: %w", err)
	}
	if value == "" {
		return "", usage("the value of %s is empty; type it at a terminal, or give it on standard input: leasehold secrets set %s < FILE", name, name)
	}
	p.redact.Add(value)
	return value, nil
}

func (p *program) removeSecret() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Take a secret away; what refers to it is blocked", Args: exactly("NAME"), Example: "  leasehold secrets remove acme-bot",
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				if err := a.RemoveSecret(ctx, args[0]); err != nil {
					return err
				}
				return p.done("removed", args[0], "secret %s is removed", args[0])
			})
		},
	}
}

// done says what was done to a thing, to people or to a program.
func (p *program) done(what, id, format string, args ...any) error {
	if p.json {
		return p.asJSON(map[string]string{what: id})
	}
	p.line(format, args...)
	return nil
}
