package exec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"leasehold/channel"
	"leasehold/internal/child"
	"leasehold/internal/redact"
)

// Config is the type's part of an installation. Its doc tags are its manual.
type Config struct {
	Command []string                   `json:"command" channel:"required,connection" doc:"The program and its arguments, run without a shell: an absolute path, or a name in the PATH. No secrets here: everybody on the machine can read them."`
	Env     map[string]channel.Text    `json:"env" channel:"connection" doc:"Variables of its environment, literal or by reference. Beside them it has PATH, HOME, TZ and the like, and nothing else of ours."`
	Config  map[string]json.RawMessage `json:"config" channel:"connection" doc:"A table of its own, handed over in start. No secrets here: they belong in env."`
}

// nameVariable says for which installation a program runs.
const nameVariable = "LEASEHOLD_INSTALLATION"

// plan is a checked config.
type plan struct {
	command []string
	env     []string
	config  map[string]json.RawMessage
	redact  *redact.Redactor // knows the values of env
}

func newPlan(c Config, environ []string) (*plan, error) {
	p := &plan{command: c.Command, config: c.Config, redact: redact.New()}
	if err := child.Check(c.Command); err != nil {
		return nil, fmt.Errorf("command: %w", err)
	}
	p.env = child.Basics(environ)
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		value := c.Env[name].Reveal()
		if err := child.CheckVariable(name, value, nameVariable); err != nil {
			return nil, fmt.Errorf("env: %w", err)
		}
		p.redact.Add(value)
		p.env = append(p.env, name+"="+value)
	}
	if p.config == nil {
		p.config = map[string]json.RawMessage{}
	}
	return p, nil
}
