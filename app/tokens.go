package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/internal/apitoken"
	"leasehold/internal/human"
)

func (p *program) tokensCommand() *cobra.Command {
	return p.group("tokens", "Tokens of the HTTP API", nil, p.listTokens(), p.createToken(), p.revokeToken())
}

func (p *program) createToken() *cobra.Command {
	var o admin.TokenOrder
	var expires string
	c := &cobra.Command{
		Use: "create NAME", Short: "Make a token", Args: exactly("NAME"),
		Long: `Make a token for the HTTP API (admin.listen) and print it once: only its hash is kept.
It may do what its scopes say (` + strings.Join(apitoken.Scopes, ", ") + `),
with the installations whose ids fit a pattern; without one, with all, and with what
concerns no single one. No token runs programs, reloads files or writes backups.`,
		Example: `  leasehold tokens create billing --scope messages:send --installation 'acme*' --expires 90d
  leasehold tokens create monitor --scope read --expires never`,
		RunE: func(c *cobra.Command, args []string) error {
			o.Name = args[0]
			if expires != "never" {
				if err := o.Expires.UnmarshalText([]byte(expires)); err != nil || o.Expires <= channel.Duration(0) {
					return usage("--expires: must be a duration such as 90d, or never (got %q)", expires)
				}
			}
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				t, err := a.CreateToken(ctx, o)
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(t)
				}
				p.line("%s", t.Text)
				until := "it does not expire"
				if !t.ExpiresAt.IsZero() {
					until = "it counts until " + stamp(t.ExpiresAt)
				}
				p.hint("this is token %s, and it is not shown again; %s", t.Name, until)
				return nil
			})
		},
	}
	c.Flags().StringSliceVar(&o.Scopes, "scope", nil, "what it may do, a `scope`; may be repeated")
	c.Flags().StringArrayVar(&o.Installations, "installation", nil, "a `pattern` of ids of installations, such as 'acme*'; may be repeated")
	c.Flags().StringVar(&expires, "expires", "90d", "how `long` it counts, or never")
	return c
}

func (p *program) listTokens() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tokens", Args: exactly(), Example: "  leasehold tokens list",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				page, err := a.Tokens(ctx)
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(page)
				}
				t := newTable("TOKEN", "SCOPES", "INSTALLATIONS", "MADE", "EXPIRES", "LAST USED")
				for _, x := range page.Items {
					expires := "never"
					if !x.ExpiresAt.IsZero() {
						expires = stamp(x.ExpiresAt)
					}
					t.row(x.Name, strings.Join(x.Scopes, ", "), strings.Join(x.Installations, ", "), human.Ago(x.CreatedAt), expires, human.Ago(x.UsedAt))
				}
				t.write(p.Stdout)
				return nil
			})
		},
	}
}

func (p *program) revokeToken() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "End a token, at once", Args: exactly("NAME"), Example: "  leasehold tokens revoke billing",
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				if err := a.RevokeToken(ctx, args[0]); err != nil {
					return err
				}
				return p.done("revoked", args[0], "token %s counts no more", args[0])
			})
		},
	}
}

// overTCP is reach for another box.
func (p *program) overTCP(ctx context.Context, n need, do func(context.Context, *admin.Client) error) error {
	if n == copying {
		return usage("a backup is made on the box itself: leave --server out there")
	}
	if p.tokenFile == "" {
		return usage("--server wants --token-file FILE; leasehold tokens create on that box makes a token")
	}
	text, err := os.ReadFile(p.tokenFile)
	if err != nil {
		return usage("read the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	p.redact.Add(token)
	way, err := admin.Remote(p.server, token)
	if err != nil {
		return asUsage(fmt.Errorf("--server: %w", err))
	}
	client := admin.NewClient(way)
	defer client.Close()
	err = do(ctx, client)
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return fmt.Errorf("%w; have this machine trust the authority that signed it (on Linux SSL_CERT_FILE may name its certificate)", err)
	}
	return asUsage(err)
}
