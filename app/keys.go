package app

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"leasehold/channel"
	"leasehold/config"
	"leasehold/delivery"
)

func (p *program) keysCommand() *cobra.Command {
	return p.group("keys", "Keys that sign what http targets get", nil, &cobra.Command{
		Use: "new", Short: "Make a signing key", Args: exactly(),
		Long: `Make a key for signing_keys of a target, and print it once: it is kept nowhere. The
receiver is given the same key. Nothing else changes, and nothing needs to run.`,
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
	})
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
