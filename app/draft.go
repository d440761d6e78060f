package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"leasehold/admin"
	"leasehold/config"
	"leasehold/internal/schema"
)

// draft is an installation as a person describes it on the command line: keys by
// --set, credentials by the environment. It becomes the TOML that a person would
// have written, so that the config's own reader judges it.
type draft struct {
	kind, id string
	keys     *schema.Schema
	config   map[string]any    // as a file holds it: credentials are references
	said     map[string]string // where a key comes from: url → --set url, password → MQTT_PASSWORD
}

// draft begins one of a channel type. Each of sets is key=value, or table.key=value.
func (p *program) draft(ctx context.Context, kind, id string, sets []string) (*draft, error) {
	d := &draft{kind: kind, id: id, config: map[string]any{}, said: map[string]string{}}
	names := make([]string, len(p.Types))
	for i, s := range p.Types {
		names[i] = s.Name
	}
	if !slices.Contains(names, kind) {
		return nil, usage("there is no channel type %q; there are: %s", kind, strings.Join(names, ", "))
	}
	err := p.describe(func(a *admin.Client) error {
		t, err := a.Type(ctx, kind)
		d.keys = t.Schema
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, s := range sets {
		key, value, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return nil, usage("--set %s: write key=value; see leasehold types show %s", key, kind)
		}
		if err := d.set(d.config, d.keys, strings.Split(key, "."), value); err != nil {
			return nil, usage("--set %s: %w", key, err)
		}
		d.said[key] = "--set " + key
	}
	return d, nil
}

// fromEnvironment refers to the variables that are set of those that a type's
// credentials have by convention: MQTT_PASSWORD for password of mqtt, and
// WEBSOCKET_SECRETS_TOKEN for token in secrets of websocket. What is there already
// stays.
func (d *draft) fromEnvironment(env []string) {
	set := map[string]bool{}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		set[name] = value != ""
	}
	for _, k := range d.credentials() {
		if k.table {
			for _, name := range slices.Sorted(maps.Keys(set)) {
				item, ok := strings.CutPrefix(name, k.variable+"_")
				if ok && set[name] && item != "" {
					d.refer(append(slices.Clone(k.path), strings.ToLower(item)), "env", name)
				}
			}
		} else if set[k.variable] {
			d.refer(k.path, "env", k.variable)
		}
	}
}

// refer makes the value of a key a reference, unless it has a value already.
func (d *draft) refer(path []string, kind, name string) {
	table := d.config
	for _, key := range path[:len(path)-1] {
		next, ok := table[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			table[key] = next
		}
		table = next
	}
	last := path[len(path)-1]
	if _, taken := table[last]; !taken {
		table[last] = map[string]any{kind: name}
		d.said[strings.Join(path, ".")] = name
	}
}

// credential is a key for a secret, and the variable that holds it by convention.
type credential struct {
	path     []string
	variable string
	table    bool // of secrets, each by its own name
	keys     *schema.Schema
}

func (d *draft) credentials() (all []credential) {
	var visit func(s *schema.Schema, path []string)
	visit = func(s *schema.Schema, path []string) {
		for _, p := range s.Properties {
			here := append(slices.Clone(path), p.Key)
			k := credential{path: here, variable: d.variable(here), keys: p.Schema}
			items := itemsOf(p.Schema)
			switch {
			case p.Schema.Secret:
				all = append(all, k)
			case items != nil && items.Secret:
				k.table = true
				all = append(all, k)
			default:
				visit(p.Schema, here)
			}
		}
	}
	visit(d.keys, nil)
	return all
}

// variable is the one that holds a key by convention: TYPE_KEY.
func (d *draft) variable(path []string) string {
	words := append([]string{d.kind}, path...)
	return strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(strings.Join(words, "_")))
}

// lack is a required key that nobody has said.
type lack struct {
	path []string
	keys *schema.Schema
}

func (d *draft) lacks() []lack { return lacksOf(d.config, d.keys, nil) }

func lacksOf(table map[string]any, s *schema.Schema, path []string) (all []lack) {
	for _, p := range s.Properties {
		here := append(slices.Clone(path), p.Key)
		value, said := table[p.Key]
		switch {
		case len(p.Schema.Properties) > 0 && !p.Schema.Secret:
			sub, _ := value.(map[string]any)
			all = append(all, lacksOf(sub, p.Schema, here)...)
		case !said && slices.Contains(s.Required, p.Key):
			all = append(all, lack{here, p.Schema})
		}
	}
	return all
}

// block writes the installation as it stands in a file, its keys in the order of
// the manual.
func (d *draft) block() (string, error) {
	var b bytes.Buffer
	b.WriteString("[[installation]]\n")
	err := errors.Join(tomlLine(&b, "id", d.id), tomlLine(&b, "type", d.kind))
	if len(d.config) > 0 {
		b.WriteString("\n[installation.config]\n")
	}
	var order []string
	for _, p := range d.keys.Properties {
		order = append(order, p.Key)
	}
	for _, key := range slices.Sorted(maps.Keys(d.config)) {
		if !slices.Contains(order, key) {
			order = append(order, key)
		}
	}
	for _, key := range order {
		if value, ok := d.config[key]; ok {
			err = errors.Join(err, tomlLine(&b, key, value))
		}
	}
	return b.String(), err
}

// tomlLine writes a key of a file, whatever its value is, on one line.
func tomlLine(b *bytes.Buffer, key string, value any) error {
	enc := toml.NewEncoder(b)
	enc.SetTablesInline(true)
	if err := enc.Encode(map[string]any{key: value}); err != nil {
		return fmt.Errorf("write %s as TOML: %w", key, err)
	}
	return nil
}

// told says faults of the config in the words of the command line, as far as they
// are the draft's. It is the caller's mistake unless something else is wrong, too.
func (d *draft) told(err error) error {
	faults, ok := errors.AsType[config.Faults](err)
	if !ok {
		return err
	}
	var lines []string
	manual := "leasehold run --help"
	for _, f := range faults {
		line, ours := d.inWords(f)
		if !ours {
			return err
		}
		if strings.HasPrefix(line, "--set") {
			manual = "leasehold types show " + d.kind
		}
		lines = append(lines, line)
	}
	return usage("%s; see %s", strings.Join(lines, "\n"), manual)
}

// inWords says a fault of the draft as the command line has it; false: it is not the
// draft's.
func (d *draft) inWords(f config.Fault) (string, bool) {
	where := ""
	if strings.HasPrefix(f.Key, `target "`+programTarget+`"`) {
		where = "--to"
	} else if key, ok := strings.CutPrefix(f.Key, fmt.Sprintf("installation %q", d.id)); ok && f.File != "" {
		switch key = strings.TrimPrefix(key, ": "); key {
		case "":
			where = "the installation"
		case "id":
			where = "--id"
		default:
			if where = d.said[key]; where == "" {
				where = "--set " + key
			}
			if strings.HasPrefix(f.Message, "a literal secret is refused; put it in a file") {
				return fmt.Sprintf("%s: a secret has no place on a command line, which everybody on the machine can read; write %s=env:NAME, or file:PATH", where, where), true
			}
		}
	}
	if where == "" {
		return "", false
	}
	text := where + ": " + f.Message
	if f.Hint != "" {
		text += " (" + f.Hint + ")"
	}
	return text, true
}
