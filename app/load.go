package app

import (
	"log/slog"
	"reflect"
	"slices"
	"sync"

	"leasehold/channel"
	"leasehold/config"
	"leasehold/internal/redact"
)

// load reads the config as run would, with every fault at once.
func (p *program) load() (*config.Config, error) { return config.Load(p.source()) }

// source is where the config comes from.
func (p *program) source() config.Source {
	env := p.Env
	if p.dataDir != "" {
		env = append(slices.Clip(env), "LEASEHOLD_NODE_DATA_DIR="+p.dataDir) // the last one counts
	}
	names := make([]string, len(p.Types))
	for i, s := range p.Types {
		names[i] = s.Name
	}
	return config.Source{Path: p.configFile, Text: p.text, Env: env, Types: p.configType, TypeNames: names}
}

func (p *program) configType(name string) (reflect.Type, bool) {
	for _, s := range p.Types {
		if s.Name == name {
			return s.Config, true
		}
	}
	return nil, false
}

// resolver reads secrets, and has each taken out of whatever leaves the program
// from then on. A secret too short for that is told once.
func (p *program) resolver(log *slog.Logger) channel.Resolver {
	secrets := config.NewSecrets(p.Env)
	var mu sync.Mutex // guards told
	told := map[string]bool{}
	return func(kind, name string) (string, error) {
		var value string
		var err error
		if kind == "secret" {
			value, err = p.secretOf(name)
		} else {
			value, err = secrets.Resolve(kind, name)
		}
		if err != nil {
			return "", err
		}
		if !p.redact.Add(value) {
			mu.Lock()
			defer mu.Unlock()
			if !told[kind+name] {
				told[kind+name] = true
				log.Warn("secret is too short to be taken out of texts", "kind", kind, "name", name, "shorter_than", redact.MinLength)
			}
		}
		return value, nil
	}
}
