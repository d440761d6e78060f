package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"leasehold/internal/schema"
)

// fill asks a person for what the draft needs, until it could be written.
func (p *program) fill(ctx context.Context, f *addition) error {
	a := p.ask(ctx)
	a.hint("%s: %s\nleasehold types show %s lists all its keys; what is asked here is what it needs.\n", f.kind, f.keys.Description, f.kind)
	if err := a.id(ctx, f); err != nil {
		return err
	}
	lacks := f.lacks()
	for {
		for _, l := range lacks {
			if err := a.key(ctx, f, l); err != nil {
				return err
			}
		}
		_, err := f.check(ctx)
		if err == nil {
			break
		}
		// What was asked and is wrong is asked again; what was not, nobody can mend here.
		again := slices.DeleteFunc(slices.Clone(lacks), func(l lack) bool {
			return !strings.Contains(err.Error(), "--set "+strings.Join(l.path, "."))
		})
		if own := (*exitError)(nil); !errors.As(err, &own) || len(again) == 0 {
			return err
		}
		a.hint("%s", p.redact.String(err.Error()))
		lacks = again
	}
	for _, k := range f.credentials() {
		if k.table || slices.ContainsFunc(f.lacks(), func(l lack) bool { return slices.Equal(l.path, k.path) }) {
			continue
		}
		if err := a.credential(ctx, f, k); err != nil {
			return err
		}
	}
	return nil
}

// id asks how the installation is called.
func (a *asker) id(ctx context.Context, f *addition) error {
	free := f.kind
	for n := 2; f.free(free) != nil; n++ {
		free = fmt.Sprintf("%s-%d", f.kind, n)
	}
	for {
		id, err := a.line(ctx, "id, its name for ever", free)
		if err != nil {
			return err
		}
		if err := f.free(id); err != nil {
			a.hint("%v", err)
			continue
		}
		f.id = id
		return nil
	}
}

// key asks for a required key: a list one item a line, everything else once.
func (a *asker) key(ctx context.Context, f *addition, l lack) error {
	name := strings.Join(l.path, ".")
	a.hint("%s", l.keys.Description)
	if l.keys.Secret {
		return a.credential(ctx, f, credential{path: l.path, variable: f.variable(l.path), keys: l.keys})
	}
	list := l.keys.Type == "array"
	delete(f.config, l.path[0])
	for n := 1; ; n++ {
		prompt := name
		if list && n > 1 {
			prompt += ", one more (Enter ends)"
		}
		text, err := a.line(ctx, prompt, defaultOf(l.keys))
		if err != nil {
			return err
		}
		if text == "" {
			if list && n > 1 {
				return nil
			}
			n = 0
			continue
		}
		if err := f.set(f.config, f.keys, l.path, text); err != nil {
			a.hint("%s %v", name, err)
			n--
			continue
		}
		if f.said[name] = "--set " + name; !list {
			return nil
		}
	}
}

func defaultOf(s *schema.Schema) string { return strings.Trim(string(s.Default), `"`) }

// credential asks for a secret, and where it shall be kept: never in the config.
func (a *asker) credential(ctx context.Context, f *addition, k credential) error {
	name := strings.Join(k.path, ".")
	if set := a.env(k.variable); set != "" {
		yes, err := a.yes(ctx, fmt.Sprintf("%s: refer to the environment variable %s, which is set here?", name, k.variable))
		if err != nil {
			return err
		}
		if yes {
			f.refer(k.path, "env", k.variable)
			return nil
		}
	}
	a.hint("%s It is not shown; Enter for none.", k.keys.Description)
	value, err := a.secret(ctx, name)
	if err != nil || value == "" {
		return err
	}
	a.redact.Add(value)
	file := f.id + "." + strings.ToLower(strings.Join(k.path, "_"))
	path := filepath.Join(filepath.Dir(f.file), file)
	yes, err := a.yes(ctx, fmt.Sprintf("keep it in %s, which only its owner can read?", path))
	if err != nil {
		return err
	}
	if !yes {
		variable := strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(f.id + "_" + strings.Join(k.path, "_")))
		a.hint("then set %s where leasehold runs; the config refers to it", variable)
		f.refer(k.path, "env", variable)
		return nil
	}
	f.secrets = append(f.secrets, secretFile{path, value})
	f.refer(k.path, "file", file) // beside the config, wherever that is moved to
	return nil
}
