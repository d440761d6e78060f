package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/delivery"
	"leasehold/internal/human"
	"leasehold/internal/seal"
)

func (p *program) keysCommand() *cobra.Command {
	return p.group("keys", "Keys that sign what http targets get, and the key that encrypts the store's", nil,
		p.newKey(), p.createKey(), p.listKeys(), p.retireKey(), p.removeKey(), p.newMaster(), p.rotateMaster())
}

func (p *program) newKey() *cobra.Command {
	return &cobra.Command{
		Use: "new", Short: "Make a signing key that you keep yourself", Args: exactly(),
		Long: `Make a key for signing_keys of a target, and print it once: it is kept nowhere. The
receiver is given the same key. Nothing else changes, and nothing needs to run. leasehold
keys create makes one that the store keeps.`,
		Example: `  (umask 077; leasehold keys new > /etc/leasehold/app.signing-key)
  leasehold keys new --json`,
		RunE: func(*cobra.Command, []string) error {
			key := delivery.NewSigningKey()
			if p.json {
				return p.asJSON(map[string]string{"key": key})
			}
			p.line("%s", key)
			p.hint(`keep it in a file of mode 0600, and name that in the [[target]]: signing_keys = [{ file = "PATH" }]; then run leasehold reload`)
			return nil
		},
	}
}

func (p *program) createKey() *cobra.Command {
	var target string
	c := &cobra.Command{
		Use: "create", Short: "Make a signing key that the store keeps", Args: exactly(),
		Long: `Make a key that signs what a target gets from now on, beside those that it has. The
value is printed this once, for the receiver; the store keeps it encrypted. To replace a
key: create one, let the receiver know it, retire the old one.`,
		Example: `  leasehold keys create --target app`,
		RunE: func(c *cobra.Command, _ []string) error {
			if target == "" {
				return usage("name the target: leasehold keys create --target NAME")
			}
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				k, err := a.CreateKey(ctx, target)
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(k)
				}
				p.line("%s", k.Key)
				p.hint("this is %s, and it is not shown again; it signs what %s gets from now on", k.ID, k.Target)
				return nil
			})
		},
	}
	c.Flags().StringVar(&target, "target", "", "the `name` of the target")
	return c
}

func (p *program) listKeys() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the signing keys in the store, never a value", Args: exactly(), Example: "  leasehold keys list",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				page, err := a.Keys(ctx)
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(page)
				}
				t := newTable("KEY", "TARGET", "MADE", "RETIRED")
				for _, k := range page.Items {
					t.row(k.ID, k.Target, human.Ago(k.CreatedAt), human.Ago(k.RetiredAt))
				}
				t.write(p.Stdout)
				return nil
			})
		},
	}
}

func (p *program) retireKey() *cobra.Command {
	return &cobra.Command{
		Use: "retire KEY", Short: "Have a key sign nothing more", Args: exactly("KEY"), Example: "  leasehold keys retire key_0123456789ab",
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				k, err := a.RetireKey(ctx, args[0])
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(k)
				}
				p.line("%s signs nothing more for %s", k.ID, k.Target)
				return nil
			})
		},
	}
}

func (p *program) removeKey() *cobra.Command {
	return &cobra.Command{
		Use: "remove KEY", Short: "Forget a key, which signs nothing more", Args: exactly("KEY"), Example: "  leasehold keys remove key_0123456789ab",
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				if err := a.RemoveKey(ctx, args[0]); err != nil {
					return err
				}
				return p.done("removed", args[0], "%s is removed", args[0])
			})
		},
	}
}

func (p *program) newMaster() *cobra.Command {
	return &cobra.Command{
		Use: "new-master", Short: "Make a master key that you keep yourself", Args: exactly(),
		Long: `Make a key for store.master_key, and print it once: it is kept nowhere. Nodes that
share a Postgres need one that all of them have. To replace one, write the new key as
the first line of what store.master_key refers to, on every node, keep the old one
below, and run leasehold keys rotate-master.`,
		Example: `  (umask 077; leasehold keys new-master > /etc/leasehold/master.key)`,
		RunE: func(*cobra.Command, []string) error {
			key := seal.NewKey()
			if p.json {
				return p.asJSON(map[string]string{"key": key.Text(), "id": key.ID()})
			}
			p.line("%s", key.Text())
			p.hint(`this is %s; keep it in a file of mode 0600, and name that: [store] master_key = { file = "PATH" }`, key.ID())
			return nil
		},
	}
}

func (p *program) rotateMaster() *cobra.Command {
	return &cobra.Command{
		Use: "rotate-master", Short: "Encrypt the store's secrets and keys with another master key", Args: exactly(),
		Long: `Encrypt everything that the store keeps sealed with another master key, in one
transaction. On SQLite the new key is made, and the old one deleted afterwards; where
store.master_key is set, the new one is its first line. Backups that were made before
need the old key.`,
		Example: `  leasehold keys rotate-master`,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				done, err := a.RotateMaster(ctx)
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(done)
				}
				p.line("%d secrets and %d signing keys are encrypted with master key %s; %s opens nothing more", done.Secrets, done.Keys, done.To, done.From)
				if !done.Own {
					p.hint("take %s out of store.master_key, on every node; backups of before need it", done.From)
				}
				return nil
			})
		},
	}
}

// misshapen are the faults of signing keys that are none, each at its reference. One
// without a value here is for others to tell.
func misshapen(c *config.Config, resolve channel.Resolver) error {
	var faults config.Faults
	for _, t := range c.Targets {
		for i, ref := range t.SigningKeys {
			value, err := resolve(ref.Kind, ref.Name)
			if err != nil {
				continue
			}
			if err := delivery.CheckSigningKey(value); err != nil {
				key, pos := fmt.Sprintf("%s: signing_keys[%d]", labelOf("target", t.Name), i), t.Pos
				if at := slices.IndexFunc(c.Uses, func(u config.Use) bool { return u.Key == key }); at >= 0 {
					pos = c.Uses[at].Pos
				}
				faults = append(faults, config.Fault{
					File: pos.File, Line: pos.Line, Col: pos.Col, Key: key,
					Message: err.Error(), Hint: "leasehold keys new makes one; the receiver must have the same",
				})
			}
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}
