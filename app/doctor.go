package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/internal/fault"
	"leasehold/internal/human"
)

// level is how much a finding matters.
type level string

const (
	fine level = "ok"
	warn level = "warn" // it works, and will not for ever, or not as one thinks
	fail level = "fail" // it does not work, or loses what it should keep
)

// finding is what one check found.
type finding struct {
	Check    string `json:"check"`
	Level    level  `json:"level"`
	Detail   string `json:"detail"`
	NextStep string `json:"next_step,omitempty"`
}

// patient is what the checks look at. What could not be found out is its zero
// value, and the finding of whoever looked for it.
type patient struct {
	config  *config.Config
	resolve channel.Resolver
	types   *channel.Types
	path    string // of the database
	full    bool   // read the whole database
	online  bool   // look names up and connect

	running bool // somebody answers on the socket
	node    admin.Overview
}

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
		if all[i].Level == fail {
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

// examine runs the checks in the order in which one goes about it: without a config
// there is no data folder to look at, without a folder no store.
func (p *program) examine(ctx context.Context, full, online bool) []finding {
	found := []finding{checkClock(clockSynchronised(), time.Now(), builtAt())}
	x := &patient{full: full, online: online}
	c, err := p.load()
	if err != nil {
		return append(found, configFaults(err)...)
	}
	x.config, x.resolve = c, p.resolver(slog.New(slog.DiscardHandler))
	if x.types, err = channel.NewTypes(x.resolve, p.Types...); err != nil {
		return append(found, finding{"config", fail, err.Error(), "correct the program's channel types"})
	}
	found = append(found, p.checkConfig(ctx, x)...)
	found = append(found, p.checkSecrets(x)...)
	found = append(found, checkProxy(c.Connect, p.env)...)
	found = append(found, checkDataDir(string(c.Node.DataDir))...)
	found = append(found, p.checkProcess(ctx, x)...)
	found = append(found, checkStore(ctx, x)...)
	if online {
		found = append(found, checkHosts(ctx, hostsOf(x))...)
	}
	return found
}

// showFindings writes a line for each check, and what to do beneath it.
func (p *program) showFindings(all []finding) {
	width := 0
	for _, f := range all {
		width = max(width, len(f.Check))
	}
	colors := map[level]string{fine: green, warn: yellow, fail: red}
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

// exists reports whether there is something at path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
