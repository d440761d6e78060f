package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Validate reports everything that is wrong with a Config made by code: what
// Load refuses in a file. The faults have no position.
func (c *Config) Validate() error {
	return validate(c, nil, nil, false).err()
}

// validator looks at values, as walker looks at how they are written.
type validator struct {
	where   map[string]Pos
	bad     map[string]bool // paths about which enough is said
	partial bool            // a file could not be read to its end: nothing is missing
	faults  Faults
}

// validate checks the whole config. where tells the position of a key's path.
func validate(c *Config, where map[string]Pos, bad map[string]bool, partial bool) Faults {
	v := &validator{where: where, bad: bad, partial: partial}
	if v.bad == nil {
		v.bad = map[string]bool{}
	}
	v.table(reflect.ValueOf(c).Elem(), spot{})
	v.names(c)
	v.lease(c.Lease)
	v.store(c.Store)
	v.connect(c.Connect)
	v.denied(c.Delivery.DenyCIDRs, spot{}.key("delivery").key("deny_cidrs"))
	v.admin(c.Admin)
	v.health(c.Health)
	for i := range c.Targets {
		v.target(&c.Targets[i], elementSpot("target", c.Targets[i].Name, i))
	}
	return v.faults
}

// spot is a value's place, for the program and for people.
type spot struct {
	path  string
	label string
	owned bool // label is an installation's or a target's
}

func (s spot) key(name string) spot {
	return spot{dot(s.path, name), join(s.label, name, s.owned), false}
}

func (s spot) item(i int) spot {
	return spot{dot(s.path, strconv.Itoa(i)), s.label, false}
}

func elementSpot(list, id string, i int) spot {
	return spot{dot(list, strconv.Itoa(i)), ownerLabel(list, id, i+1), true}
}

// fail reports a fault, once for each path.
func (v *validator) fail(s spot, message, hint string) {
	if v.bad[s.path] {
		return
	}
	v.bad[s.path] = true
	pos := v.pos(s.path)
	if pos.File == environment {
		s.label = envName(s.path)
	}
	v.faults = append(v.faults, Fault{pos.File, pos.Line, pos.Col, s.label, message, hint})
}

// pos is where a key is set; where it is not, where its table begins.
func (v *validator) pos(path string) Pos {
	for path != "" {
		if pos, ok := v.where[path]; ok {
			return pos
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return Pos{}
}

// table applies the tags of a struct's keys.
func (v *validator) table(t reflect.Value, s spot) {
	for _, f := range fields(t.Type()) {
		x, at := t.Field(f.index), s.key(f.name)
		switch {
		case f.later() && !x.IsZero():
			v.fail(at, notYet, "")
		case f.later():
		case shapeOf(f.typ) == tableShape:
			v.table(x, at)
		case x.Kind() == reflect.Slice && shapeOf(f.typ.Elem()) == tableShape:
			for i := range x.Len() {
				v.table(x.Index(i), elementSpot(f.name, idOf(x.Index(i)), i))
			}
		case x.IsZero() && f.tag.Get("required") == "true":
			v.absent(at)
		default:
			if message := broken(x, f.tag); message != "" {
				v.fail(at, message, suggestion(x, f.tag))
			}
		}
	}
}

// absent reports a required key that is not there, or is there and empty.
func (v *validator) absent(at spot) {
	switch _, set := v.where[at.path]; {
	case set:
		v.fail(at, "must not be empty", "")
	case !v.partial:
		v.fail(at, "is missing", "")
	}
}

func idOf(x reflect.Value) string {
	switch e := x.Interface().(type) {
	case Installation:
		return e.ID
	case Target:
		return e.Name
	}
	return ""
}

// broken says which of its tags a value breaks, "" for none. It shows numbers and
// durations, never strings.
func broken(x reflect.Value, tag reflect.StructTag) string {
	if of := tag.Get("oneof"); of != "" && x.Kind() == reflect.String {
		later := strings.Fields(tag.Get("later"))
		switch {
		case slices.Contains(strings.Fields(of), x.String()):
		case slices.Contains(later, x.String()):
			return quote(x.String()) + " is " + notYet
		default:
			return "must be " + orList(strings.Fields(of))
		}
	}
	n, ok := numeric(x)
	if !ok {
		return ""
	}
	switch {
	case tag.Get("positive") == "true" && n <= 0:
		return fmt.Sprintf("must be positive (got %s)", printable(x))
	case n < 0 && shapeOf(x.Type()) == textShape: // durations and sizes
		return fmt.Sprintf("must not be negative (got %s)", printable(x))
	}
	if low, ok := bound(x, tag.Get("min")); ok && n < low {
		return fmt.Sprintf("must be at least %s (got %s)", tag.Get("min"), printable(x))
	}
	if high, ok := bound(x, tag.Get("max")); ok && n > high {
		return fmt.Sprintf("must be at most %s (got %s)", tag.Get("max"), printable(x))
	}
	return ""
}

// suggestion is for a word that is nearly one of those allowed.
func suggestion(x reflect.Value, tag reflect.StructTag) string {
	if x.Kind() != reflect.String {
		return ""
	}
	near, ok := closest(x.String(), strings.Fields(tag.Get("oneof")))
	if !ok {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", near)
}

func numeric(x reflect.Value) (float64, bool) {
	switch {
	case x.CanInt():
		return float64(x.Int()), true
	case x.CanUint():
		return float64(x.Uint()), true
	case x.CanFloat():
		return x.Float(), true
	}
	return 0, false
}

// bound reads a bound as the value's own type writes it.
func bound(x reflect.Value, text string) (float64, bool) {
	if text == "" {
		return 0, false
	}
	b := reflect.New(x.Type())
	if u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](b); ok {
		if err := u.UnmarshalText([]byte(text)); err == nil {
			return numeric(b.Elem())
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// printable is a number or duration as one would write it.
func printable(x reflect.Value) string {
	if m, ok := reflect.TypeAssert[encoding.TextMarshaler](x); ok {
		if b, err := m.MarshalText(); err == nil {
			return string(b)
		}
	}
	return fmt.Sprint(x.Interface())
}

// orList writes "a", "b" or "c".
func orList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}
