package config

import (
	"reflect"
	"slices"
)

// Follow is what a program that runs with c runs with once it has read next:
// next, but for the keys that cannot change while it runs, which stay as they are
// in c. changed names the keys that take effect at once and differ, targets and
// installations left aside; restart names those that need a restart.
func (c *Config) Follow(next *Config) (merged *Config, changed, restart []string) {
	whole := *next
	f := follower{}
	f.table(reflect.ValueOf(c).Elem(), reflect.ValueOf(&whole).Elem(), "")
	return &whole, f.changed, f.restart
}

// follower compares two configs, key by key, and keeps in the second what cannot
// change.
type follower struct{ changed, restart []string }

func (f *follower) table(was, now reflect.Value, path string) {
	for _, key := range fields(was.Type()) {
		a, b, at := was.Field(key.index), now.Field(key.index), dot(path, key.name)
		switch list := key.typ.Kind() == reflect.Slice && shapeOf(key.typ.Elem()) == tableShape; {
		case list && key.reloads(): // targets and installations: whoever applies them compares
		case shapeOf(key.typ) == tableShape:
			f.table(a, b, at)
		case reflect.DeepEqual(a.Interface(), b.Interface()):
		case key.reloads():
			f.changed = append(f.changed, at)
		default:
			f.restart = append(f.restart, at)
			b.Set(a)
		}
	}
}

// reloads reports whether a change of the key takes effect while the program runs.
func (f field) reloads() bool { return f.tag.Get("reload") == "true" }

// Main is the file that c was read from, before those of conf.d; "" = there was
// none.
func (c *Config) Main() string {
	i := slices.IndexFunc(c.Files, func(file string) bool { return !inParts(file) })
	if i < 0 {
		return ""
	}
	return c.Files[i]
}
