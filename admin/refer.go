package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"leasehold/internal/apitoken"
	"leasehold/internal/fault"
)

// mayRefer refuses a config that would send a secret to an address of its own to
// whoever may not read that secret: a stranger to the machine may not name a file, a
// variable or a program of it, and of the tokens only one that may set every secret may
// name one of the store. what is the row, as people call it. The config is written anew
// as it was looked at: of two keys of one name another reader could take the other.
func mayRefer(r *http.Request, stranger bool, what string, config *json.RawMessage) error {
	if !stranger {
		return nil
	}
	t, token := callerOf(r.Context())
	d := json.NewDecoder(bytes.NewReader(*config))
	d.UseNumber()
	var keys map[string]any
	if err := d.Decode(&keys); err != nil {
		return fault.Errorf(fault.Invalid, "%s: its config must be a JSON object: %w", what, err)
	}
	plain, err := json.Marshal(keys)
	if err != nil {
		return fmt.Errorf("write the config of %s: %w", what, err)
	}
	*config = plain
	machine, store := referred(keys)
	switch {
	case machine:
		return fault.Errorf(fault.Denied, "%s refers to files, variables or programs of the machine; define it in the config file or over the local socket, or write { secret = \"NAME\" }", what)
	case store && token && (!t.May(apitoken.Secrets) || !t.Everywhere()):
		return fault.Errorf(fault.Denied, "%s refers to a secret of the store, and would send it to where its config says; token %s needs the scope %s, too, and for all installations", what, t.Name, apitoken.Secrets)
	}
	return nil
}

// referred reports where the references in a config lead: to the machine, to the
// store.
func referred(v any) (machine, store bool) {
	look := func(inner any) {
		m, s := referred(inner)
		machine, store = machine || m, store || s
	}
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			switch key {
			case "match":
				continue // its names are fields of events
			case "ca_file", "client_cert":
				machine = true
			case "file", "env", "credential", "command":
				machine = machine || len(v) == 1
			case "secret":
				store = store || len(v) == 1
			}
			look(inner)
		}
	case []any:
		for _, inner := range v {
			look(inner)
		}
	}
	return machine, store
}
