package delivery

import (
	"slices"
	"strconv"
	"strings"

	"leasehold/channel"
	"leasehold/internal/eventmatch"
	"leasehold/internal/jsonframe"
)

// rule is one line of a target's Match, read.
type rule struct {
	path   eventmatch.Path
	values []eventmatch.Pattern
}

// rulesOf reads a Match, whatever is cheap to look at first: raw is a walk over
// all that the platform sent. fault takes what is wrong with it.
func rulesOf(match map[string][]string, fault func(key, format string, args ...any)) []rule {
	rules := make([]rule, 0, len(match))
	for field, values := range match {
		path, err := eventmatch.ParsePath(field)
		if err != nil {
			fault("match", "%s %v", field, err)
			continue
		}
		if len(values) == 0 {
			fault("match", "%s has no value", field)
		}
		r := rule{path: path}
		for _, v := range values {
			pattern, err := path.Pattern(v)
			if err != nil {
				fault("match", "%s %v", field, err)
			}
			r.values = append(r.values, pattern)
		}
		rules = append(rules, r)
	}
	slices.SortFunc(rules, func(a, b rule) int { return len(a.path.Pointer) - len(b.path.Pointer) })
	return rules
}

// subject is an event about which targets are asked.
type subject struct {
	*channel.Event
	id       string // the installation's
	describe func(installation string) (channelType string, labels map[string]string)
	asked    bool
	typ      string
	labels   map[string]string
}

// ask looks the installation up, once and only if a rule wants to know.
func (s *subject) ask() {
	if !s.asked && s.describe != nil {
		s.typ, s.labels = s.describe(s.id)
	}
	s.asked = true
}

// takes reports whether the target gets an event: by its type, the kind of its
// conversation, and its fields. Whoever names system events gets them whatever they
// are about: they have no conversation.
func (t Target) takes(s *subject) bool {
	if !t.wants(s.Type) {
		return false
	}
	if strings.HasPrefix(s.Type, "system.") {
		return true
	}
	if len(t.Kinds) > 0 && !slices.Contains(t.Kinds, s.Conversation.Kind) {
		return false
	}
	if c, ok := t.Sink.(Choosy); ok && !c.Takes(s.id, s.Event) {
		return false
	}
	for _, r := range t.rules {
		if !r.fits(s) {
			return false
		}
	}
	return true
}

// fits reports whether a field has one of its values. One that the event does not
// have is empty; of several mentions one is enough.
func (r *rule) fits(s *subject) bool {
	if r.path.Name == "mentions" && len(s.Mentions) > 0 {
		return slices.ContainsFunc(s.Mentions, r.allows)
	}
	return r.allows(s.field(&r.path))
}

func (r *rule) allows(value string) bool {
	return slices.ContainsFunc(r.values, func(p eventmatch.Pattern) bool { return p.Fits(value) })
}

// field is what the envelope will say in a field, as text; "" where it says nothing.
func (s *subject) field(p *eventmatch.Path) string {
	switch p.Name {
	case "installation.id":
		return s.id
	case "installation.type":
		s.ask()
		return s.typ
	case eventmatch.Labels:
		s.ask()
		return s.labels[p.Rest]
	case "workspace":
		return s.Workspace
	case "message_id":
		return s.MessageID
	case "conversation.id":
		return s.Conversation.ID
	case "conversation.kind":
		return s.Conversation.Kind
	case "conversation.title":
		return s.Conversation.Title
	case "thread":
		return s.Thread
	case "sender.id":
		return s.Sender.ID
	case "sender.name":
		return s.Sender.Name
	case "sender.bot":
		return strconv.FormatBool(s.Sender.Bot)
	case "sender.self":
		return strconv.FormatBool(s.Sender.Self)
	case "reply_to":
		return s.ReplyTo
	case "text":
		return s.Text
	case "body":
		return s.Body
	case "addressed":
		return strconv.FormatBool(s.Addressed)
	case "late":
		return strconv.FormatBool(s.Late)
	case "content_type":
		return s.ContentType
	case eventmatch.Raw:
		return rawField(p.Pointer, s.Raw)
	default:
		return s.part(p)
	}
}

// part is a field of what only some types of events have.
func (s *subject) part(p *eventmatch.Path) string {
	group, name, _ := strings.Cut(p.Name, ".")
	switch {
	case group == "command" && s.Command != nil:
		if name == "name" {
			return s.Command.Name
		}
		return s.Command.Args
	case group == "action" && s.Action != nil:
		if name == "id" {
			return s.Action.ID
		}
		return s.Action.Value
	case group == "reaction" && s.Reaction != nil:
		if name == "emoji" {
			return s.Reaction.Emoji
		}
		return strconv.FormatBool(s.Reaction.Removed)
	case group == "device" && s.Device != nil:
		switch name {
		case "qos":
			return strconv.Itoa(s.Device.QoS)
		case "retain":
			return strconv.FormatBool(s.Device.Retain)
		}
		return s.Device.Properties[p.Rest]
	}
	return ""
}

// rawField is what stands at a pointer, if it is a text, a number, true or false.
func rawField(p jsonframe.Pointer, raw []byte) string {
	value, ok := p.In(raw)
	if !ok || len(value) == 0 || value[0] == '{' || value[0] == '[' || string(value) == "null" {
		return ""
	}
	return jsonframe.Text(value)
}

// checkRules finds what is wrong with Kinds and Match of a target made by code; of
// one from a file config tells it, with its line.
func (t Target) checkRules(fault func(key, format string, args ...any)) {
	if slices.Contains(t.Kinds, "") {
		fault("kinds", `"" is no kind of conversation`)
	}
	rulesOf(t.Match, fault)
}

// noFault is for rules that were checked.
func noFault(string, string, ...any) {}
