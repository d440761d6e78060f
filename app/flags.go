package app

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// misread is what the caller is told of a flag that does not parse: what was
// wanted, not how Go failed to read it.
func misread(c *cobra.Command, err error) error {
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return usage("%w; see %s --help", err, c.CommandPath())
	}
	wants, known := map[string]string{
		"int": "a whole number", "int64": "a whole number", "float64": "a number",
		"bool": "true or false", "duration": "a duration such as 30s or 5m",
	}[wrong.GetFlag().Value.Type()]
	if !known {
		return usage("--%s: %w (got %q); see %s --help", wrong.GetFlag().Name, wrong.Unwrap(), wrong.GetValue(), c.CommandPath())
	}
	return usage("--%s: must be %s (got %q); see %s --help", wrong.GetFlag().Name, wants, wrong.GetValue(), c.CommandPath())
}
