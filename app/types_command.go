package app

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/internal/schema"
)

func (p *program) typesCommand() *cobra.Command {
	return p.group("types", "List channel types, and show their keys", nil, p.listTypes(), p.showType())
}

// describe asks the handlers in this process: a program's types are its own, so
// neither a store nor a config is needed to tell them.
func (p *program) describe(do func(*admin.Client) error) error {
	types, err := channel.NewTypes(nil, p.Types...)
	if err != nil {
		return err
	}
	c := admin.NewClient(admin.InProcess(admin.New(admin.Options{Types: types, Mode: admin.Stopped, Version: buildVersion()})))
	defer c.Close()
	return do(c)
}

func (p *program) listTypes() *cobra.Command {
	var hosts bool
	c := &cobra.Command{
		Use: "list", Short: "List the channel types", Args: exactly(), Example: "  leasehold types list\n  leasehold types list --hosts     what a firewall must allow",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.describe(func(a *admin.Client) error {
				page, err := a.Types(c.Context())
				if err != nil {
					return err
				}
				switch {
				case p.json:
					return p.asJSON(page)
				case hosts:
					p.hostTable(page.Items)
				default:
					p.typeTable(page.Items)
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&hosts, "hosts", false, "list the hosts that a firewall must allow")
	return c
}

func (p *program) typeTable(types []admin.Type) {
	t := newTable("TYPE", "CAN", "DEAF FOR AT MOST", "SUMMARY")
	for _, x := range types {
		t.row(x.Name, strings.Join(append([]string{"hear"}, x.Can...), ", "), x.Deaf, x.Summary)
	}
	t.write(p.Stdout)
}

func (p *program) hostTable(types []admin.Type) {
	t := newTable("TYPE", "HOST")
	for _, x := range types {
		if len(x.Hosts) == 0 {
			t.row(x.Name, "(as its config says)")
		}
		for _, h := range x.Hosts {
			t.row(x.Name, h)
		}
	}
	t.write(p.Stdout)
}

func (p *program) showType() *cobra.Command {
	return &cobra.Command{
		Use: "show TYPE", Short: "Show a channel type and its keys", Args: exactly("TYPE"), Example: "  leasehold types show websocket\n  leasehold types show websocket --json",
		RunE: func(c *cobra.Command, args []string) error {
			return p.describe(func(a *admin.Client) error {
				t, err := a.Type(c.Context(), args[0])
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(t)
				}
				p.showTypeKeys(t)
				return nil
			})
		},
		ValidArgsFunction: p.completeType,
	}
}

// completeType completes the name of a channel type.
func (p *program) completeType(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, s := range p.Types {
		if len(args) == 0 {
			names = append(names, s.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (p *program) showTypeKeys(t admin.Type) {
	p.line("%s: %s", t.Name, t.Summary)
	if t.Deaf != "" {
		p.line("A dead connection is noticed within %s.", t.Deaf)
	}
	for _, l := range []struct {
		rate channel.Rate
		of   string
	}{{t.Limits.All, ""}, {t.Limits.Chat, " into one conversation"}} {
		if l.rate.N > 0 {
			p.line("Messages are sent%s no faster than %s.", l.of, l.rate)
		}
	}
	if most := t.Writes.String(); most != "" {
		p.line("A text is written as %s, at most %s in one message.", cmp.Or(t.Writes.Markup, channel.Plain), most)
	}
	if t.FileOnly {
		p.line("Only the config file can define one.")
	}
	p.line("")
	p.line("[[installation]]\nid = \"…\"\ntype = %q\n[installation.config]", t.Name)
	p.line("")
	keys := newTable("KEY", "VALUE", "DEFAULT", "")
	keyRows(keys, "", t.Schema)
	keys.write(p.Stdout)
}

func keyRows(t *table, prefix string, s *schema.Schema) {
	for _, property := range s.Properties {
		k := property.Schema
		notes := k.Description
		for _, required := range s.Required {
			if required == property.Key {
				notes = "Required. " + notes
			}
		}
		t.row(prefix+property.Key, kindOf(k), strings.Trim(string(k.Default), `"`), strings.TrimSpace(notes))
		if len(k.Properties) > 0 && !k.Secret {
			keyRows(t, prefix+property.Key+".", k)
		}
	}
}

// kindOf is what a person writes for a key.
func kindOf(s *schema.Schema) string {
	switch values, _ := s.Additional.(map[string]any); {
	case s.Secret:
		return "secret"
	case len(s.OneOf) > 0:
		return "text or secret"
	case s.Pattern != "":
		return "duration"
	case s.Items != nil:
		return "list of " + kindOf(s.Items)
	case values != nil:
		if values["x-secret"] == true {
			return "table of secrets"
		}
		if values["oneOf"] != nil {
			return "table of texts or secrets"
		}
		return "table"
	case s.Type == "object":
		return "table"
	case s.Type == "":
		return "anything"
	}
	return s.Type
}
