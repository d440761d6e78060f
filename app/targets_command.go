package app

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/config"
	"leasehold/internal/human"
)

func (p *program) targetsCommand() *cobra.Command {
	return p.group("targets", "List, show and change where events go", nil,
		p.listTargets(), p.showTarget(), p.addTarget(), p.setTarget(), p.testTarget(), p.pullTarget(),
		p.switchTarget(true), p.switchTarget(false), p.removeTarget())
}

func (p *program) listTargets() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List targets and how they do", Args: exactly(), Example: "  leasehold targets list\n  leasehold targets list --json",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				items, err := everyTarget(ctx, a)
				if err != nil {
					return err
				}
				all := admin.Page[admin.TargetView]{Items: items}
				if p.json {
					return p.asJSON(all)
				}
				t := newTable("TARGET", "TYPE", "STATE", "SOURCE", "REASON")
				for _, v := range all.Items {
					state, reason := targetWords(v)
					t.row(v.Name, v.Type(), state, v.Source, human.Short(reason, 80))
				}
				p.painted(t, 2).write(p.Stdout)
				return nil
			})
		},
	}
}

// targetWords say how a target does, and why.
func targetWords(v admin.TargetView) (state, reason string) {
	switch {
	case v.Off != "":
		return "off", v.Reason
	case v.Status == nil:
		return "on", ""
	default:
		return v.Status.State, v.Status.Reason
	}
}

func (p *program) showTarget() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show one with its keys and its state", Args: exactly("NAME"), Example: "  leasehold targets show app",
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				v, err := a.Target(ctx, args[0])
				return p.target(v, err)
			})
		},
	}
}

// target shows one, however a command came by it.
func (p *program) target(v admin.TargetView, err error) error {
	if err != nil {
		return err
	}
	if p.json {
		return p.asJSON(v)
	}
	source := v.Source
	if v.Declared != "" {
		source += " " + v.Declared
	}
	state, reason := targetWords(v)
	step := ""
	if v.Status != nil {
		step = v.Status.NextStep
	}
	p.fields(
		"target", v.Name, "type", v.Type(), "state", state, "reason", reason, "off since", stamp(v.OffSince), "next step", step,
		"source", source, "revision", strconv.FormatInt(v.Revision, 10), "config", string(v.Config),
	)
	return nil
}

const targetKeysHelp = `The keys are those of a [[target]], docs/config.md has them all: url=http://localhost:3000/events,
events=message,action, timeout=60s, headers.X-Team=ops, type=pull. A secret is a
reference: headers.Authorization=file:PATH, env:NAME, credential:NAME or secret:NAME.`

func (p *program) addTarget() *cobra.Command {
	return &cobra.Command{
		Use: "add NAME KEY=VALUE... [-- PROGRAM ARGUMENT...]", Short: "Make a target", Args: cobra.ArbitraryArgs,
		Long: "Make a target. With a url it is of type http, with a program behind -- of type command.\nIt gets the events of every installation that names no targets, unless\ndelivery.targets of the config says which ones do.\n\n" + targetKeysHelp,
		Example: `  leasehold targets add app url=http://localhost:3000/events
  leasehold targets add batchjob type=pull events=message
  leasehold targets add worker timeout=60s -- /usr/local/bin/on-event --quiet`,
		RunE: func(c *cobra.Command, args []string) error {
			name, keys, err := targetArgs(c, args)
			if err != nil {
				return err
			}
			switch {
			case keys["type"] != nil:
			case keys["command"] != nil:
				keys["type"] = "command"
			case keys["url"] != nil:
				keys["type"] = "http"
			}
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				v, err := a.PutTarget(ctx, name, keys, 0)
				return p.target(v, err)
			})
		},
	}
}

func (p *program) setTarget() *cobra.Command {
	return &cobra.Command{
		Use: "set NAME KEY=VALUE... [-- PROGRAM ARGUMENT...]", Short: "Change keys of a target; KEY= takes one away", Args: cobra.ArbitraryArgs,
		Long: "Change keys of a target; KEY= takes one away. The others stay.\n\n" + targetKeysHelp, Example: "  leasehold targets set app timeout=60s kinds=",
		RunE: func(c *cobra.Command, args []string) error {
			name, keys, err := targetArgs(c, args)
			if err != nil {
				return err
			}
			if len(keys) == 0 {
				return usage("say what to change: leasehold targets set %s KEY=VALUE", name)
			}
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				was, err := a.Target(ctx, name)
				if err != nil {
					return err
				}
				v, err := a.PatchTarget(ctx, name, keys, was.Revision)
				return p.target(v, err)
			})
		},
	}
}

// targetArgs reads NAME KEY=VALUE... [-- PROGRAM ARGUMENT...].
func targetArgs(c *cobra.Command, args []string) (name string, keys map[string]any, err error) {
	keys = map[string]any{}
	if dash := c.ArgsLenAtDash(); dash >= 0 {
		if len(args) == dash {
			return "", nil, usage("name the program behind --")
		}
		keys["command"] = args[dash:]
		args = args[:dash]
	}
	if len(args) == 0 || args[0] == "" || strings.Contains(args[0], "=") {
		return "", nil, usage("name the target first; see %s --help", c.CommandPath())
	}
	for _, arg := range args[1:] {
		key, text, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			return "", nil, usage("%q: write KEY=VALUE", human.Short(arg, 40))
		}
		if err := setTargetKey(keys, key, text); err != nil {
			return "", nil, usage("%s: %w", key, err)
		}
	}
	return args[0], keys, nil
}

// setTargetKey puts what was typed where its key leads. A key that there is not is
// kept for whoever checks the whole, who knows what was meant.
func setTargetKey(keys map[string]any, path, text string) error {
	key, inner, deep := strings.Cut(path, ".")
	form := config.TargetForm(key)
	if deep {
		table, _ := keys[key].(map[string]any)
		if table == nil {
			table = map[string]any{}
			keys[key] = table
		}
		ref, referred := referenceIn(text)
		switch {
		case text == "":
			table[inner] = nil
		case referred && key != "match":
			table[inner] = ref
		case key == "match":
			table[inner] = strings.Split(text, ",")
		default:
			table[inner] = text
		}
		return nil
	}
	if text == "" {
		keys[key] = nil
		return nil
	}
	value, err := targetValue(form, text)
	if more, ok := value.([]any); ok && err == nil {
		before, _ := keys[key].([]any)
		value = append(before, more...)
	}
	keys[key] = value
	return err
}

func targetValue(form config.Form, text string) (any, error) {
	switch form {
	case config.NumberForm, config.FlagForm:
		return parsed(text)
	case config.FileForm:
		return filepath.Abs(text)
	case config.TableForm:
		if !strings.HasPrefix(strings.TrimSpace(text), "{") {
			return nil, errTable
		}
		return parsed(text)
	case config.SecretForm, config.SecretsForm:
		ref, ok := referenceIn(text)
		switch {
		case !ok:
			return nil, errSecret
		case form == config.SecretsForm:
			return []any{ref}, nil
		}
		return ref, nil
	case config.ListForm:
		if strings.HasPrefix(strings.TrimSpace(text), "[") {
			return parsed(text)
		}
		var all []any
		for item := range strings.SplitSeq(text, ",") {
			all = append(all, strings.TrimSpace(item))
		}
		return all, nil
	default:
		return text, nil
	}
}
