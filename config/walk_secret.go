package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"leasehold/internal/secretname"
)

// secret takes a field that only a reference may fill.
func (w *walker) secret(n *node, v reflect.Value, path string) {
	if n.kind != tableKind {
		w.literal(n, path)
		return
	}
	if ref, ok := w.reference(n, path); ok && v.Type() == referenceType {
		v.Set(reflect.ValueOf(ref))
	}
}

// maybe takes a field that a literal string or a reference may fill.
func (w *walker) maybe(n *node, v reflect.Value, path string) {
	value := Value{Literal: n.text}
	switch n.kind {
	case stringKind:
		if w.passworded(n, path) {
			return
		}
	case tableKind:
		ref, ok := w.reference(n, path)
		if !ok {
			return
		}
		value = Value{Reference: ref}
	default:
		w.wrong(n, path, `a string or a reference such as { env = "NAME" }`, "")
		return
	}
	if v.Type() == valueType {
		v.Set(reflect.ValueOf(value))
	}
}

// kinds are the references of this version; the others are of a later one.
var kinds = []string{"env", "file", "credential", "secret"}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reference reads { env = "X" } and its like. It makes a file absolute in the
// tree, too, because the tree becomes the installation's JSON.
func (w *walker) reference(n *node, path string) (Reference, bool) {
	var ref Reference
	for _, e := range n.entries {
		x := e.value
		switch e.key {
		case "env", "file", "credential", "secret":
			ref = Reference{Kind: e.key, Name: x.text}
			if x.kind != stringKind {
				w.wrong(x, path, "a string", "")
			} else if message := misnamed(ref); message != "" {
				w.fail(x, path, message, "")
			}
		case "command":
			w.fail(x, path, notYet, `use { env = "NAME" }, { file = "PATH" }, { credential = "NAME" } or { secret = "NAME" }`, e.pos)
		default:
			w.fail(x, path, "unknown kind of reference", either(e.key, kinds), e.pos)
		}
	}
	if len(n.entries) != 1 && !w.bad[path] {
		w.fail(n, path, fmt.Sprintf("must have one of env, file, credential and secret (got %d)", len(n.entries)), "")
	}
	if w.bad[path] {
		return Reference{}, false
	}
	switch ref.Kind {
	case "file":
		ref.Name = w.absolute(ref.Name)
		n.entries[0].value.text = ref.Name
	case "env":
		w.envs[ref.Name] = true
	}
	w.uses = append(w.uses, Use{n.pos, n.label(), ref})
	return ref, true
}

// misnamed says what keeps a reference from being one. It does not repeat the
// name: people paste the secret itself there.
func misnamed(r Reference) string {
	switch {
	case r.Name == "":
		return "must not be empty"
	case r.Kind == "env" && !variable.MatchString(r.Name):
		return "must be the name of an environment variable, without $ and without its value"
	case r.Kind == "credential" && (strings.ContainsAny(r.Name, `/\`) || r.Name == "." || r.Name == ".."):
		return "must be the name of a file in $CREDENTIALS_DIRECTORY, without a folder"
	case r.Kind == "secret" && !nameForm.MatchString(r.Name):
		return "must be the name of a secret, as leasehold secrets list shows it"
	case strings.ContainsRune(r.Name, 0):
		return "must not contain NUL"
	}
	return ""
}

// literal refuses a secret that stands in the file, with what to write instead.
func (w *walker) literal(n *node, path string) {
	key, form := n.name, "%s"
	if n.nth > 0 { // one of a list
		key, form = n.parent.name, "[%s]"
	}
	id := ""
	for x := n; x.parent != nil && id == ""; x = x.parent {
		if o := x.owner(); o != nil {
			id = o.id()
		} else if x.parent.parent == nil {
			id = x.name // the table, for keys that belong to no installation or target
		}
	}
	id = cmp.Or(tame(id), "leasehold")
	name := id + "." + strings.ToLower(tame(key))
	file := filepath.ToSlash(filepath.Join(w.host.system, name))
	env := strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(id + "_" + tame(key)))
	w.fail(n, path, fmt.Sprintf(
		`a literal secret is refused; put it in a file and write %s = %s, or { env = "%s" }, or run leasehold secrets set %s and write { secret = "%[4]s" }`,
		bare(key), fmt.Sprintf(form, fmt.Sprintf(`{ file = "%s" }`, file)), env, name), "")
}

// tame makes a word that is safe in the name of a file.
func tame(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, s)
	return strings.TrimLeft(s[:min(len(s), 64)], ".-")
}

// passworded refuses the password in a URL of a channel type's config. Ours have
// their own checks, which know what to write instead.
func (w *walker) passworded(n *node, path string) bool {
	if !w.channel || !secretname.InURL(n.text) {
		return false
	}
	w.fail(n, path, "a literal secret is refused; take the password out of the URL and see leasehold types show for the key that takes it by reference", "")
	return true
}
