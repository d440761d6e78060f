package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"leasehold/config"
	"leasehold/internal/secretname"
)

// shownSecrets warn of what looks like a literal secret in the query of a URL. It is no
// fault: some programs call other things a key.
func shownSecrets(c *config.Config) (warnings []string) {
	for _, t := range c.Targets {
		if name, found := secretname.InQuery(t.URL); found {
			warnings = append(warnings, fmt.Sprintf("%s: %s: url: %s in the query looks like a secret, for everybody who reads the file: send it in headers = { … }, by reference", t.Pos, labelOf("target", t.Name), name))
		}
	}
	for _, i := range c.Installations {
		var tree any
		if json.Unmarshal(i.Config, &tree) != nil {
			continue
		}
		eachText(tree, "", func(key, text string) {
			name, found := secretname.InQuery(text)
			if !found {
				return
			}
			pos, set := i.Keys[key]
			if !set {
				pos = i.Pos
			}
			warnings = append(warnings, fmt.Sprintf("%s: %s: %s: %s in the query looks like a secret, for everybody who reads the file: write {{%s}} there, and secrets = { %s = { secret = \"NAME\" } }",
				pos, labelOf("installation", i.ID), key, name, strings.ToLower(name), strings.ToLower(name)))
		})
	}
	return warnings
}

// eachText calls f for every text in a config, with its key.
func eachText(v any, key string, f func(key, text string)) {
	switch v := v.(type) {
	case string:
		f(key, v)
	case []any:
		for n, item := range v {
			eachText(item, fmt.Sprintf("%s.%d", key, n), f)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			eachText(v[name], strings.TrimPrefix(key+"."+name, "."), f)
		}
	}
}
