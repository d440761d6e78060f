// Package eventmatch is the small language in which a target says which events it
// takes: fields of the envelope's data, each with the values that it may have. The
// config file and delivery understand the same because both ask here.
//
// A field is named as the envelope nests it, with dots: conversation.id. What stands
// behind installation.labels. and device.properties. is one name, dots and all; what
// stands behind raw is a JSON pointer: raw/event/type. A value is compared as text.
// One with * at its end fits what begins like it, * alone fits anything but
// nothing, and the empty one fits what the event does not have.
package eventmatch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"leasehold/internal/jsonframe"
)

// kind is what values a field can have.
type kind int

const (
	text kind = iota
	boolean
	number
)

// fields are the fields whose name is all there is to say.
func fields() map[string]kind {
	return map[string]kind{
		"installation.id": text, "installation.type": text, "workspace": text, "message_id": text,
		"conversation.id": text, "conversation.kind": text, "conversation.title": text, "thread": text,
		"sender.id": text, "sender.name": text, "sender.bot": boolean, "sender.self": boolean,
		"reply_to": text, "text": text, "body": text, "addressed": boolean, "mentions": text,
		"command.name": text, "command.args": text, "action.id": text, "action.value": text,
		"reaction.emoji": text, "reaction.removed": boolean, "device.qos": number, "device.retain": boolean,
		"late": boolean, "content_type": text,
	}
}

// The fields that continue with a name of somebody else's.
const (
	Labels     = "installation.labels"
	Properties = "device.properties"
	Raw        = "raw"
)

// Names lists the fields, for suggestions and tests. Those that continue end with
// what stands before the rest.
func Names() []string {
	names := []string{Labels + ".", Properties + ".", Raw + "/"}
	for name := range fields() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Path is a field.
type Path struct {
	Name    string            // one of Names, without the dot or slash at its end
	Rest    string            // the label or the property
	Pointer jsonframe.Pointer // into raw
	kind    kind
}

// ErrUnknown means that no event has the field.
var ErrUnknown = errors.New("is no field of an event")

// ParsePath reads the name of a field. Its error is ErrUnknown, or says what is
// wrong with the rest of a name that is known.
func ParsePath(s string) (Path, error) {
	if k, ok := fields()[s]; ok {
		return Path{Name: s, kind: k}, nil
	}
	for _, open := range []string{Labels, Properties} {
		if rest, ok := strings.CutPrefix(s, open+"."); ok {
			if rest == "" {
				return Path{}, fmt.Errorf("names nothing behind %s", open)
			}
			return Path{Name: open, Rest: rest}, nil
		}
	}
	if rest, ok := strings.CutPrefix(s, Raw+"/"); ok {
		p, err := jsonframe.ParsePointer("/" + rest)
		if err != nil {
			return Path{}, errors.New("has no JSON pointer behind raw: write ~ as ~0 and / as ~1")
		}
		return Path{Name: Raw, Pointer: p}, nil
	}
	return Path{}, ErrUnknown
}

// Pattern is one value that a field may have.
type Pattern struct {
	text   string
	prefix bool
}

// Pattern reads a value that the field may have.
func (p Path) Pattern(s string) (Pattern, error) {
	switch {
	case s == "", s == "*":
	case p.kind == boolean && s != "true" && s != "false":
		return Pattern{}, errors.New("must be true or false")
	case p.kind == number:
		if _, err := strconv.Atoi(s); err != nil {
			return Pattern{}, errors.New("must be a whole number")
		}
	}
	head, prefix := strings.CutSuffix(s, "*")
	if strings.Contains(head, "*") {
		return Pattern{}, errors.New("may have one *, at its end")
	}
	return Pattern{head, prefix}, nil
}

// Fits reports whether a value is one that is meant; "" stands for none.
func (p Pattern) Fits(value string) bool {
	switch {
	case !p.prefix:
		return value == p.text
	case p.text == "":
		return value != ""
	default:
		return strings.HasPrefix(value, p.text)
	}
}
