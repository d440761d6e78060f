package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// unknown reports a key that its table does not have, with what it may have meant.
func (w *walker) unknown(n *node, e entry, v reflect.Value, path string) {
	message, hint := "unknown key", ""
	names := keyNames(w.fields(v.Type()))
	switch near, ok := closest(e.key, names); {
	case w.channel && n.parent.owner() != nil && e.key != "config" && isName(e.key, keyNames(w.fields(installationType))):
		message = "belongs to [[installation]], not to its config"
		hint = "move it above [installation.config]"
	case ok:
		hint = fmt.Sprintf("did you mean %q?", near)
	case v.Type() == installationType && w.typeHas(n, e.key):
		hint = "a key of the channel type: move it under [installation.config]"
	default:
		if table, ok := w.tableWith(e.key); ok && !w.channel {
			hint = fmt.Sprintf("[%s] has a key of that name", table)
		} else if len(names) > 0 && len(names) <= 12 { // more would not be read
			hint = "known: " + strings.Join(names, ", ")
		}
	}
	w.fail(e.value, dot(path, e.key), message, hint, e.pos)
}

// typeHas reports whether the channel type of an installation has a key.
func (w *walker) typeHas(n *node, key string) bool {
	t := n.get("type")
	if t == nil || w.src.Types == nil {
		return false
	}
	c, ok := w.src.Types(t.text)
	return ok && c != nil && isName(key, keyNames(w.fields(deref(c))))
}

// tableWith finds the one table of the top level that has a key.
func (w *walker) tableWith(key string) (string, bool) {
	for _, f := range w.fields(configType) {
		if f.typ.Kind() == reflect.Struct && isName(key, keyNames(w.fields(f.typ))) {
			return f.name, true
		}
	}
	return "", false
}

func isName(s string, names []string) bool { return slices.Contains(names, s) }

// keyNames lists the keys of this version.
func keyNames(known []field) []string {
	var names []string
	for _, f := range known {
		if !f.later() {
			names = append(names, f.name)
		}
	}
	return names
}

// either suggests the closest of a few names, or all of them.
func either(s string, names []string) string {
	if near, ok := closest(s, names); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	const most = 20 // more would not be read
	if len(names) == 0 || len(names) > most {
		return ""
	}
	return "one of " + strings.Join(names, ", ")
}

// closest returns the name that s was probably meant to be: the fewest typing
// mistakes away, at most a third of its length, and never all of it.
func closest(s string, names []string) (string, bool) {
	const longest = 64 // longer is no typing mistake, and the table below is quadratic
	if len(s) > longest {
		return "", false
	}
	names = names[:min(len(names), 1000)] // of thousands of ids, any may be close
	best, least := "", min(max(1, len(s)/3), len(s)-1)+1
	for _, name := range names {
		if name == s || len(name) > longest {
			continue
		}
		if d := distance(strings.ToLower(s), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best, best != ""
}

// distance counts the letters to add, drop, change or swap with their neighbour
// to make b of a.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
