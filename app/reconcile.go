package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
)

// wanted are the rows that the config file declares. A config that does not decode
// here, for want of a secret most often, is no reason to drop its row or to stop
// the others: it is stored, and its installation is blocked with the reason. Two
// that are one bot on its platform make the file invalid.
func wanted(c *config.Config, types *channel.Types, key []byte) (rows []admin.Installation, unready map[string]error, err error) {
	unready = map[string]error{}
	owners := map[string]config.Installation{}
	var faults config.Faults
	for _, i := range c.Installations {
		row := admin.Installation{
			ID: i.ID, Type: i.Type, Via: i.Via, Config: i.Config, Labels: i.Labels, Targets: i.Targets, Enabled: i.Enabled, Source: admin.SourceFile, Interactions: i.Interactions,
		}
		if err := admin.Seal(types, key, &row); err != nil {
			unready[i.ID] = err
		}
		rows = append(rows, row)
		if row.Identity == "" || !row.Enabled {
			continue
		}
		who := row.Type + "\x00" + row.Identity
		first, twice := owners[who]
		if !twice {
			owners[who] = i
			continue
		}
		faults = append(faults, config.Fault{
			File: i.Pos.File, Line: i.Pos.Line, Col: i.Pos.Col, Key: fmt.Sprintf("installation %q", i.ID),
			Message: fmt.Sprintf("is the same %s as installation %q at %s (%s): the platform would split its events between the two", i.Type, first.ID, first.Pos, row.Identity),
			Hint:    "remove one, or set enabled = false",
		})
	}
	if len(faults) > 0 {
		return nil, nil, faults
	}
	return rows, unready, nil
}

// differences says what a start would change in the store, by id and in the
// order of the lists.
func differences(want, have []admin.Installation) (added, changed, removed []string) {
	stored := map[string]admin.Installation{}
	for _, h := range have {
		if h.Source == admin.SourceFile {
			stored[h.ID] = h
		}
	}
	for _, w := range want {
		h, ok := stored[w.ID]
		delete(stored, w.ID)
		switch {
		case !ok:
			added = append(added, w.ID)
		case !same(w, h):
			changed = append(changed, w.ID)
		}
	}
	for _, h := range have {
		if _, left := stored[h.ID]; left {
			removed = append(removed, h.ID)
		}
	}
	return added, changed, removed
}

// unlike says how the file differs from a store that it does not own. Fingerprints
// are left out: each node keys its own.
func unlike(want, have []admin.Installation) changes {
	bare := func(all []admin.Installation) []admin.Installation {
		all = slices.Clone(all)
		for n := range all {
			all[n].Fingerprint, all[n].Source = "", admin.SourceFile
		}
		return all
	}
	var d changes
	d.Added, d.Changed, _ = differences(bare(want), bare(have))
	return d
}

// any reports whether there is a difference.
func (c changes) any() bool { return len(c.Added)+len(c.Changed)+len(c.Removed) > 0 }

// same compares what a file can say. A fingerprint that differs alone is a secret
// that was rotated.
func same(a, b admin.Installation) bool {
	text := func(i admin.Installation) string {
		var config any
		if json.Unmarshal(i.Config, &config) != nil {
			config = string(i.Config)
		}
		if len(i.Labels) == 0 {
			i.Labels = nil
		}
		b, _ := json.Marshal([]any{i.Type, i.Via, config, i.Labels, i.Targets, i.Enabled, i.Fingerprint, cmp.Or(i.Interactions, admin.Defer)}) // it came from JSON
		return string(b)
	}
	return text(a) == text(b)
}

// declared tells where the file sets an installation; "" = it does not.
func declared(c *config.Config, id string) string {
	i := slices.IndexFunc(c.Installations, func(i config.Installation) bool { return i.ID == id })
	if i < 0 {
		return ""
	}
	return c.Installations[i].Pos.String()
}
