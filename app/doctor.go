package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/app/doctor"
	"leasehold/channel"
	"leasehold/internal/fault"
	"leasehold/internal/human"
)

func (p *program) doctorCommand() *cobra.Command {
	var full, online bool
	c := &cobra.Command{
		Use: "doctor", Short: "Look at this machine and this installation of leasehold, and say what to do", Args: exactly(),
		Long: `Look at the config, the data folder and the disk under it, the clock, the process that
runs, its limits, the secrets and the backups. Each finding that is not ok ends with
what mends it. Nothing is changed. It ends with 1 when a check failed; a warning is no
failure.

How the installations are, leasehold status knows.`,
		Example: `  leasehold doctor
  leasehold doctor --full       also read the whole database
  leasehold doctor --online     also look up and reach the hosts that the config names`,
		RunE: func(c *cobra.Command, _ []string) error { return p.doctor(c.Context(), full, online) },
	}
	c.Flags().BoolVar(&full, "full", false, "also read the whole database")
	c.Flags().BoolVar(&online, "online", false, "also look up and reach the hosts that the config names")
	return c
}

func (p *program) doctor(ctx context.Context, full, online bool) error {
	all := p.examine(ctx, full, online)
	failed := 0
	for i := range all {
		all[i].Detail, all[i].NextStep = p.redact.String(all[i].Detail), p.redact.String(all[i].NextStep)
		if all[i].Level == doctor.Fail {
			failed++
		}
	}
	if p.json {
		if err := p.asJSON(map[string]any{"ok": failed == 0, "findings": all}); err != nil {
			return err
		}
	} else {
		p.showFindings(all)
	}
	switch {
	case failed == 0:
		return nil
	case p.json:
		return &exitError{code: fault.ExitFailed}
	case failed == 1:
		return &exitError{fault.ExitFailed, errors.New("1 check failed; do what stands beneath it, then run leasehold doctor again")}
	}
	return &exitError{fault.ExitFailed, fmt.Errorf("%d checks failed; do what stands beneath them, then run leasehold doctor again", failed)}
}

// examine looks at everything, or at what can be looked at without a config.
func (p *program) examine(ctx context.Context, full, online bool) []doctor.Finding {
	found := []doctor.Finding{doctor.Machine()}
	c, err := p.load()
	if err != nil {
		return append(found, doctor.Faults(err)...)
	}
	resolve := p.resolver(slog.New(slog.DiscardHandler))
	types, err := channel.NewTypes(resolve, p.Types...)
	if err != nil {
		return append(found, doctor.Finding{Check: "config", Level: doctor.Fail, Detail: err.Error(), NextStep: "correct the program's channel types"})
	}
	return append(found, doctor.Examine(ctx, doctor.Patient{
		Config: c, Resolve: resolve, Types: types, Version: buildVersion(), Env: p.env, Full: full, Online: online,
		Startable: func(ctx context.Context) error {
			if err := p.lookIntoVault(ctx, c, resolve); err != nil {
				return err
			}
			return errors.Join(unbuilt(ctx, c, types, resolve), p.startable(c, resolve))
		},
		Status: func(ctx context.Context, socket string) (o admin.Overview, err error) {
			err = ask(ctx, socket, func(ctx context.Context, a *admin.Client) (err error) {
				o, err = a.Status(ctx)
				return err
			})
			return o, err
		},
	})...)
}

// showFindings writes a line for each check, and what to do beneath it.
func (p *program) showFindings(all []doctor.Finding) {
	width := 0
	for _, f := range all {
		width = max(width, len(f.Check))
	}
	colors := map[doctor.Level]string{doctor.OK: green, doctor.Warn: yellow, doctor.Fail: red}
	for _, f := range all {
		shown := fmt.Sprintf("%-4s", f.Level)
		if p.colorful(p.Stdout) {
			shown = colors[f.Level] + shown + plain
		}
		p.line("%s  %-*s  %s", shown, width, f.Check, human.Printable(f.Detail))
		if f.NextStep != "" {
			p.line("%*s  %s", width+6, "", human.Printable(f.NextStep))
		}
	}
}
