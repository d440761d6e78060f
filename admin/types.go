package admin

import (
	"net/http"
	"reflect"

	"leasehold/channel"
	"leasehold/internal/fault"
	"leasehold/internal/schema"
)

// Type is a channel type, for people who write a config and for firewalls.
type Type struct {
	Name    string   `json:"name"`
	Summary string   `json:"summary"`
	Can     []string `json:"can"`   // beside hearing: send, edit, delete, …
	Hosts   []string `json:"hosts"` // host:port to allow; empty = the config names them
	Deaf    string   `json:"deaf,omitempty"`
	// FileOnly: only the config file can define an installation of it.
	FileOnly bool            `json:"file_only,omitempty"`
	Limits   channel.Limits  `json:"limits,omitzero"`  // how fast the platform may be spoken to, unless the config says so
	Writes   channel.Writing `json:"writes,omitzero"`  // what the platform reads, unless the config says so
	Schema   *schema.Schema  `json:"schema,omitempty"` // of [installation.config]; not in lists
}

func (a *API) listTypes(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	page := Page[Type]{Items: []Type{}}
	for _, name := range a.o.Types.Names() {
		spec, _ := a.o.Types.Lookup(name)
		page.Items = append(page.Items, typeOf(spec))
	}
	return a.answer(w, http.StatusOK, page)
}

func (a *API) showType(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	spec, ok := a.o.Types.Lookup(r.PathValue("name"))
	if !ok {
		return fault.Errorf(fault.NotFound, "there is no channel type %q; run leasehold types list", r.PathValue("name"))
	}
	t := typeOf(spec)
	t.Schema = schema.Of(spec.Config, knownType)
	t.Schema.Dialect, t.Schema.Title, t.Schema.Description = schema.Draft, spec.Name, spec.Summary
	return a.answer(w, http.StatusOK, t)
}

func typeOf(s channel.Spec) Type {
	t := Type{Name: s.Name, Summary: s.Summary, Can: []string{}, Hosts: append([]string{}, s.Hosts...), FileOnly: s.FileOnly, Limits: s.Limits, Writes: s.Writes}
	if s.Deaf > 0 {
		t.Deaf = s.Deaf.String()
	}
	for _, c := range []struct {
		name string
		can  bool
	}{
		{"send", s.Can.Send},
		{"edit", s.Can.Edit},
		{"delete", s.Can.Delete},
		{"react", s.Can.React},
		{"typing", s.Can.Typing},
		{"threads", s.Can.Threads},
		{"ephemeral", s.Can.Ephemeral},
		{"attachments", s.Can.Attachments},
		{"history", s.Can.History},
		{"native", s.Can.Native},
		{"call", s.Can.Call},
		{"idempotent", s.Can.Idempotent},
	} {
		if c.can {
			t.Can = append(t.Can, c.name)
		}
	}
	return t
}

// knownType describes the contract's own types, as a config writes them.
func knownType(t reflect.Type) (schema.Schema, bool) {
	switch t {
	case reflect.TypeFor[channel.Secret]():
		s := *reference()
		s.Secret = true
		return s, true
	case reflect.TypeFor[channel.Text]():
		return schema.Schema{OneOf: []*schema.Schema{{Type: "string"}, reference()}}, true
	case reflect.TypeFor[channel.Duration]():
		return schema.Schema{Type: "string", Pattern: `^([0-9]+d)?([0-9.]+(ns|us|µs|ms|s|m|h))*$`}, true
	case reflect.TypeFor[channel.Rate]():
		return schema.Schema{Type: "string", Pattern: `^([0-9]+/[0-9a-zµ.]+( burst [0-9]+)?)?$`}, true
	default:
		return schema.Schema{}, false
	}
}

// reference is a secret as a config refers to it: exactly one of the four keys.
func reference() *schema.Schema {
	s := &schema.Schema{Type: "object"}
	for _, key := range []string{"env", "file", "credential", "secret"} {
		s.OneOf = append(s.OneOf, &schema.Schema{
			Properties: schema.Properties{{Key: key, Schema: &schema.Schema{Type: "string"}}}, Required: []string{key}, Additional: false,
		})
	}
	return s
}
