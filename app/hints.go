package app

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"leasehold/channel"
)

// later are commands that people will look for and that are not in this version.
var later = []string{
	"install", "uninstall", "start", "stop", "restart", "upgrade", "logs", "ui",
	"targets", "keys", "tokens", "secrets",
}

// otherwise are the words of other programs, and what they are called here: a
// command line for the first word, a command's name for one within a group.
var otherwise, otherwiseIn = map[string]string{
	"serve": "run", "server": "run", "daemon": "run", "up": "run", "demo": "run --demo",
	"ps": "status", "health": "status --check", "ready": "status --ready", "stats": "status",
	"validate": "check", "verify": "check", "config": "check", "lint": "check", "test": "check",
	"ls": "installations list", "list": "installations list", "show": "installations show ID", "bots": "installations",
	"put": "installations put ID", "enable": "installations enable ID", "disable": "installations disable ID", "remove": "installations remove ID",
	"tail": "events tail", "follow": "events tail", "watch": "events tail", "replay": "events replay", "drop": "deliveries drop",
	"post": "send ID", "say": "send ID", "reply": "send ID", "publish": "send ID",
	"channels": "types", "mock": "fake TYPE", "about": "version",
}, map[string]string{
	"ls": "list", "all": "list", "get": "show", "describe": "show", "cat": "show", "info": "show",
	"follow": "tail", "watch": "tail", "stream": "tail",
	"rm": "remove", "delete": "remove", "del": "remove", "uninstall": "remove",
	"create": "put", "new": "put", "set": "put", "update": "put", "edit": "put",
	"retry": "replay", "redeliver": "replay", "resend": "replay", "requeue": "replay", "discard": "drop", "purge": "drop",
	"start": "run", "exec": "run", "trigger": "run",
}

// unknown refuses a word that is no command, and says what was probably meant.
func (p *program) unknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	word, path := args[0], c.CommandPath()
	if meant := p.meant(c, args); meant != "" {
		return usage("%s has no command %q; did you mean %s?", path, word, meant)
	}
	switch top := !c.HasParent(); {
	case top && word == "install" && len(args) > 1:
		return usage("a bot is added to the config with: leasehold add %s; see leasehold types", args[1])
	case top && slices.Contains(later, word):
		return usage("%q is not in this version; see %s --help", word, path)
	}
	if near := c.SuggestionsFor(word); len(near) > 0 {
		return usage("%s has no command %q; did you mean %s?", path, word, strings.Join(near, " or "))
	}
	return usage("%s has no command %q; see %s --help", path, word, path)
}

// meant is what another program's word is called here; "" when nobody can tell.
func (p *program) meant(c *cobra.Command, args []string) string {
	word := strings.ToLower(args[0])
	if c.HasParent() {
		name := otherwiseIn[word]
		if slices.ContainsFunc(c.Commands(), func(sub *cobra.Command) bool { return sub.Name() == name }) {
			return c.CommandPath() + " " + name
		}
		return ""
	}
	if slices.ContainsFunc(p.Types, func(s channel.Spec) bool { return s.Name == word }) {
		return "leasehold run " + word + ", or leasehold add " + word
	}
	// A verb in front of its noun, or the noun without its plural.
	for _, noun := range slices.Backward(args[:min(2, len(args))]) {
		noun = strings.TrimSuffix(strings.ToLower(noun), "s") + "s"
		for _, sub := range c.Commands() {
			if sub.Name() == noun && sub.HasSubCommands() {
				return sub.CommandPath()
			}
		}
	}
	if line := otherwise[word]; line != "" {
		return "leasehold " + line
	}
	return ""
}
