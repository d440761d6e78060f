package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/internal/fault"
	"leasehold/internal/human"
)

func (p *program) installationsCommand() *cobra.Command {
	return p.group("installations", "List, show and change installations", []string{"inst"},
		p.listInstallations(), p.showInstallation(), p.putInstallation(), p.enableInstallation(true), p.enableInstallation(false), p.removeInstallation())
}

func (p *program) listInstallations() *cobra.Command {
	var state, kind string
	var labels []string
	c := &cobra.Command{
		Use: "list", Short: "List installations and their states", Args: exactly(),
		Example: "  leasehold installations list --state blocked\n  leasehold inst list --label tenant=acme --json",
		RunE: func(c *cobra.Command, _ []string) error {
			q := filter("state", state, "type", kind)
			q["label"] = labels
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				views, err := everyInstallation(ctx, a, q)
				if err != nil {
					return err
				}
				all := admin.Page[admin.View]{Items: views}
				if p.json {
					return p.asJSON(all)
				}
				p.installationTable(all.Items)
				return nil
			})
		},
	}
	c.Flags().StringVar(&state, "state", "", "only those in this `state`")
	c.Flags().StringVar(&kind, "type", "", "only those of this channel `type`")
	c.Flags().StringArrayVar(&labels, "label", nil, "only those with this `name=value`; may be repeated")
	return c
}

func (p *program) installationTable(views []admin.View) {
	t := newTable("INSTALLATION", "TYPE", "STATE", "SINCE", "LAST EVENT", "WAITING", "REASON")
	for _, v := range views {
		reason := strings.TrimPrefix(v.Status.Reason+": "+v.Status.Detail, ": ")
		if !v.Status.NextAttempt.IsZero() {
			reason += "; next try " + human.In(v.Status.NextAttempt)
		}
		t.row(v.ID, v.Type, v.Status.State, human.Ago(v.Status.Since), human.Ago(v.Status.LastEvent), strconv.FormatInt(v.Backlog, 10), human.Short(strings.TrimSuffix(reason, ": "), 80))
	}
	p.painted(t, 2).write(p.Stdout)
}

func (p *program) showInstallation() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show one with its config and its state", Args: exactly("ID"), Example: "  leasehold installations show acme",
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				v, err := a.Installation(ctx, args[0])
				return p.installation(v, err)
			})
		},
	}
}

// installation shows one, however a command came by it.
func (p *program) installation(v admin.View, err error) error {
	if err != nil {
		return err
	}
	if v.Warning != "" {
		p.hint("warning: %s", v.Warning)
	}
	if p.json {
		return p.asJSON(v)
	}
	source := v.Source
	if v.Declared != "" {
		source += " " + v.Declared
	}
	state := strings.TrimSpace(v.Status.State + " " + v.Status.Reason)
	if !v.Status.Since.IsZero() {
		state += ", since " + stamp(v.Status.Since)
	}
	p.fields(
		"installation", v.ID, "type", v.Type, "rides on", v.Via, "state", state, "detail", v.Status.Detail, "next step", v.NextStep,
		"attempts", count(v.Status.Attempts), "next attempt", stamp(v.Status.NextAttempt),
		"last connected", stamp(v.Status.LastReady), "last event", stamp(v.Status.LastEvent),
		"waiting", strconv.FormatInt(v.Backlog, 10), "oldest waits since", stamp(v.OldestPending), "held by", v.Node,
		"enabled", yesNo(v.Enabled), "targets", targetsLine(v.Targets), "labels", pairs(v.Labels), "interactions", v.Interactions,
		"source", source, "revision", strconv.FormatInt(v.Revision, 10), "config", string(v.Config),
	)
	return nil
}

// targetsLine are the targets that an installation names; "" for none.
func targetsLine(names []string) string {
	if names != nil && len(names) == 0 {
		return "none: its events are stored and go nowhere"
	}
	return strings.Join(names, ", ")
}

// putFlags are what a put may say beside a whole file.
type putFlags struct {
	file, kind, via, config string
	labels, targets         []string
	interactions            string
	disabled, nowhere       bool
	revision                int64
}

func (p *program) putInstallation() *cobra.Command {
	var f putFlags
	c := &cobra.Command{
		Use: "put ID", Short: "Create an installation, or replace one", Args: exactly("ID"),
		Long: `Create an installation, or replace the one of the given revision. Secrets are
written as references: {"env":"NAME"}, {"file":"PATH"}, {"credential":"NAME"} or {"secret":"NAME"}.`,
		Example: `  leasehold installations put acme --type websocket --config-json '{"url":"wss://example.com/events"}'
  leasehold installations put acme --file acme.json --revision 3`,
		RunE: func(c *cobra.Command, args []string) error {
			in, err := p.input(f)
			if err != nil {
				return err
			}
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				v, err := a.PutInstallation(ctx, args[0], in, f.revision)
				return p.installation(v, err)
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.file, "file", "", "read the installation as JSON from this `file`; - is standard input")
	flags.StringVar(&f.kind, "type", "", "its channel `type`; see leasehold types list")
	flags.StringVar(&f.via, "via", "", "ride on the connection of this installation `id`")
	flags.StringVar(&f.config, "config-json", "", "the type's keys as `JSON`")
	flags.StringArrayVar(&f.labels, "label", nil, "a label, `name=value`; may be repeated")
	flags.BoolVar(&f.nowhere, "nowhere", false, "store its events and deliver them to no target")
	flags.StringArrayVar(&f.targets, "target", nil, "a target `name` for its events; may be repeated")
	flags.StringVar(&f.interactions, "interactions", "", "who answers a button: defer (we do, at once) or sync (the program)")
	flags.BoolVar(&f.disabled, "disabled", false, "do not connect it yet")
	flags.Int64Var(&f.revision, "revision", 0, "replace the one of this revision `number`")
	for _, other := range []string{"type", "via", "config-json", "label", "target", "nowhere", "disabled", "interactions"} {
		c.MarkFlagsMutuallyExclusive("file", other)
	}
	c.MarkFlagsMutuallyExclusive("target", "nowhere")
	return c
}

func (p *program) input(f putFlags) (in admin.Input, err error) {
	if f.file != "" {
		return p.inputFile(f.file)
	}
	if f.kind == "" {
		return in, usage("name a channel type with --type, or a file with --file; see leasehold types list")
	}
	in = admin.Input{Type: f.kind, Via: f.via, Targets: f.targets, Interactions: f.interactions}
	if f.nowhere {
		in.Targets = []string{}
	}
	if f.disabled {
		in.Enabled = new(bool)
	}
	if f.config != "" {
		if !json.Valid([]byte(f.config)) {
			return in, usage("--config-json is not JSON; quote it for your shell, such as --config-json '{\"url\":\"wss://example.com\"}'")
		}
		in.Config = json.RawMessage(f.config)
	}
	for _, l := range f.labels {
		name, value, ok := strings.Cut(l, "=")
		if !ok || name == "" {
			return in, usage("--label %q: write name=value", l)
		}
		if in.Labels == nil {
			in.Labels = map[string]string{}
		}
		in.Labels[name] = value
	}
	return in, nil
}

func (p *program) inputFile(path string) (in admin.Input, err error) {
	src := p.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return in, usage("read the installation: %w", err)
		}
		defer func() { _ = f.Close() }() // read only
		src = f
	}
	dec := json.NewDecoder(io.LimitReader(src, 1<<20)) // what the handlers take
	dec.DisallowUnknownFields()
	switch err := dec.Decode(&in); {
	case errors.Is(err, io.EOF):
		return in, usage("%s is empty; write {\"type\": …, \"config\": {…}}", path)
	case err != nil:
		return in, usage("%s does not fit: %s", path, strings.TrimPrefix(err.Error(), "json: "))
	}
	return in, nil
}

func (p *program) enableInstallation(enabled bool) *cobra.Command {
	c := &cobra.Command{Use: "disable ID", Short: "Disconnect one; what waits is still delivered", Args: exactly("ID")}
	if enabled {
		c.Use, c.Short = "enable ID", "Connect one that was disabled"
	}
	c.Example = "  leasehold installations " + strings.Replace(c.Use, "ID", "acme", 1)
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
			v, err := a.SetEnabled(ctx, args[0], enabled)
			if err != nil || p.json {
				return p.installation(v, err)
			}
			p.line("%s is %sd", v.ID, strings.Fields(c.Use)[0])
			return nil
		})
	}
	return c
}

func (p *program) removeInstallation() *cobra.Command {
	return &cobra.Command{
		Use: "remove ID", Short: "Take one away; what waits is still delivered", Args: exactly("ID"), Example: "  leasehold installations remove acme",
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				if err := a.RemoveInstallation(ctx, args[0]); err != nil {
					return err
				}
				if p.json {
					return p.asJSON(map[string]string{"removed": args[0]})
				}
				p.line("%s is removed; its events stay for their retention", args[0])
				return nil
			})
		},
	}
}

// filter makes the query of those values that are set: name, value, name, value, …
func filter(nameValue ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(nameValue); i += 2 {
		if nameValue[i+1] != "" {
			q.Set(nameValue[i], nameValue[i+1])
		}
	}
	return q
}

// asUsage makes a request that the handlers found wrong the caller's mistake: 78 is
// for a config that keeps the program from starting.
func asUsage(err error) error {
	var own *exitError
	if fault.Is(err, fault.Invalid) && !errors.As(err, &own) {
		return &exitError{fault.ExitUsage, err}
	}
	return err
}
