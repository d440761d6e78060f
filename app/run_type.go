package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"leasehold/channel"
	"leasehold/config"
	"leasehold/internal/human"
)

// programTarget names the target of a bot that runs without a file.
const programTarget = "program"

// runFlags are what describes one bot and one program, without a file.
type runFlags struct {
	to, id string
	sets   []string
}

// said reports whether any of them was given.
func (f runFlags) said() bool { return f.to != "" || f.id != "" || len(f.sets) > 0 }

// runType runs one bot of a channel type for one program. Its data folder is its
// own and stays: the next run of the same type and id goes on where this one ended.
func (p *program) runType(ctx context.Context, kind string, f runFlags, command []string) error {
	if p.configFile != "" {
		return usage("leasehold run %s is without a file; leave --config out, or run with the file and without %s", kind, kind)
	}
	id := f.id
	if id == "" {
		id = kind
	}
	d, err := p.draft(ctx, kind, id, f.sets)
	if err != nil {
		return err
	}
	if len(command) > 0 {
		if err := d.command(command); err != nil {
			return err
		}
	}
	d.fromEnvironment(p.Env)
	if lacks := d.lacks(); len(lacks) > 0 {
		return d.wanting("run", lacks)
	}
	c, err := p.loadDraft(ctx, d, f.to)
	if err != nil {
		return d.told(err)
	}
	to := f.to
	if c.Targets[0].Type == "log" {
		to = "the log"
	}
	if err := p.introduce(d, to, string(c.Node.DataDir)); err != nil {
		return err
	}
	return p.run(ctx, c, p.logger(c.Log, p.Stderr))
}

// introduce says what runs, and where its data is kept.
func (p *program) introduce(d *draft, to, dir string) error {
	if p.json {
		return p.asJSON(map[string]string{"id": d.id, "type": d.kind, "to": to, "data_dir": dir})
	}
	p.line("%s %q → %s; its data is kept in %s, for the next run of the same id", d.kind, d.id, human.Printable(to), dir)
	p.line("From another terminal: %s --data-dir %s status", shellWord(os.Args[0]), shellWord(dir))
	return nil
}

// command takes what stands behind -- for the type's command.
func (d *draft) command(args []string) error {
	if !slices.ContainsFunc(d.keys.Properties, isCommand) {
		return usage("a %s runs no command; nothing goes behind --", d.kind)
	}
	all := make([]any, len(args))
	for i, a := range args {
		all[i] = a
	}
	d.config["command"], d.said["command"] = all, "--"
	return nil
}

// wanting tells all that a type needs and nobody has said, each with how to say it.
func (d *draft) wanting(verb string, lacks []lack) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s needs more:", verb, d.kind)
	for _, l := range lacks {
		how := "--set " + strings.Join(l.path, ".") + "=…"
		if l.keys.Secret {
			how = "the environment variable " + d.variable(l.path)
		}
		fmt.Fprintf(&text, "\n  %-24s %s", how, l.keys.Description)
	}
	var variables []string
	for _, k := range d.credentials() {
		if k.table {
			k.variable += "_NAME"
		}
		variables = append(variables, k.variable)
	}
	if len(variables) > 0 {
		fmt.Fprintf(&text, "\nits secrets come from the environment: %s", strings.Join(variables, ", "))
	}
	return usage("%s\nsee leasehold types show %s", text.String(), d.kind)
}

// loadDraft makes the draft the program's whole config, in place of any file, and
// checks it as a file is checked.
func (p *program) loadDraft(ctx context.Context, d *draft, to string) (*config.Config, error) {
	block, err := d.block()
	var target bytes.Buffer
	target.WriteString("[[target]]\n")
	err = errors.Join(err, tomlLine(&target, "name", programTarget))
	if to == "" || to == "-" {
		err = errors.Join(err, tomlLine(&target, "type", "log"))
	} else {
		err = errors.Join(err, tomlLine(&target, "type", "http"), tomlLine(&target, "url", to))
	}
	if err != nil {
		return nil, err
	}
	p.text = []byte(target.String() + block)
	c, err := p.load()
	if err != nil {
		return nil, err
	}
	if p.dataDir == "" && p.env("LEASEHOLD_NODE_DATA_DIR") == "" {
		own := d.kind
		if d.id != d.kind {
			own += "-" + d.id
		}
		var node bytes.Buffer
		if err := tomlLine(&node, "node", map[string]any{"data_dir": filepath.Join(string(c.Node.DataDir), "bots", own)}); err != nil {
			return nil, err
		}
		p.text = append(node.Bytes(), p.text...) // keys of no table stand in front
		if c, err = p.load(); err != nil {
			return nil, err
		}
	}
	resolve := p.resolver(p.logger(c.Log, p.Stderr))
	var lines []string
	for _, u := range c.Uses {
		if _, err := resolve(u.Kind, u.Name); err != nil {
			lines = append(lines, fmt.Sprintf("%s: %v", d.where(u.Key), err))
		}
	}
	if len(lines) > 0 {
		return nil, usage("%w", errors.New(strings.Join(lines, "\n")))
	}
	types, err := channel.NewTypes(resolve, p.Types...)
	if err != nil {
		return nil, err
	}
	return c, unbuilt(ctx, c, types, resolve)
}

// where is how the value of a key was said.
func (d *draft) where(key string) string {
	key = strings.TrimPrefix(key, fmt.Sprintf("installation %q: ", d.id))
	if said := d.said[key]; said != "" {
		return said
	}
	return "--set " + key
}

// shellWord quotes a word for a shell, where it needs that.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=,@%+", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
