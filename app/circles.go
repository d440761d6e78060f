package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"leasehold/config"
	"leasehold/delivery/outbound"
	"leasehold/internal/eventmatch"
)

// circles are the ways on which a message could go round for ever: targets of type
// message, each of which posts through an installation whose events go to the next
// one, the last one's to the first. What a target posts is an event to whoever else
// listens there. Each circle begins with its first target of the file; of several
// through one target the shortest is named, and one that is part of another is not
// named again.
func circles(c *config.Config) (all [][]config.Target) {
	seen := map[string]bool{}
	for _, t := range c.Targets {
		if way := roundTrip(c, t); len(way) > 0 && !seen[t.Name] {
			all = append(all, way)
			for _, x := range way {
				seen[x.Name] = true
			}
		}
	}
	return all
}

// roundTrip is the shortest way from a target back to it; nil = there is none.
func roundTrip(c *config.Config, from config.Target) []config.Target {
	ways, been := [][]config.Target{{from}}, map[string]bool{}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		for _, next := range heard(c, way[len(way)-1]) {
			switch {
			case next.Name == from.Name:
				return way
			case !been[next.Name]:
				been[next.Name] = true
				ways = append(ways, append(slices.Clone(way), next))
			}
		}
	}
	return nil
}

// heard are the targets of type message that may get what t posts as an event of the
// installation through which it posts.
func heard(c *config.Config, t config.Target) (all []config.Target) {
	i := slices.IndexFunc(c.Installations, func(i config.Installation) bool { return i.ID == t.Installation })
	if t.Type != "message" || i < 0 {
		return nil
	}
	from := c.Installations[i]
	named := from.Targets
	if named == nil {
		named = c.Delivery.Targets
	}
	for _, u := range c.Targets {
		if u.Type == "message" && (named == nil || slices.Contains(named, u.Name)) && mayTake(u, from, t) {
			all = append(all, u)
		}
	}
	return all
}

// mayTake reports whether u may want what t posts through from. Where u posts into the
// same conversation it does not take what is said there; what is left is a platform
// that says one message in several, unless u names its conversations.
func mayTake(u config.Target, from config.Installation, t config.Target) bool {
	if !slices.ContainsFunc(u.Events, func(e string) bool { return !strings.HasPrefix(e, "system.") }) {
		return false
	}
	may := func(field, value string) bool {
		patterns, narrowed := u.Match[field]
		if !narrowed {
			return true
		}
		p, err := eventmatch.ParsePath(field)
		if err != nil {
			return true // config.Load has said so
		}
		return slices.ContainsFunc(patterns, func(s string) bool {
			pattern, err := p.Pattern(s)
			return err != nil || pattern.Fits(value)
		})
	}
	if u.Installation == t.Installation && u.Conversation == t.Conversation {
		if _, narrowed := u.Match["conversation.id"]; narrowed {
			return false
		}
	} else if !may("conversation.id", t.Conversation) {
		return false
	}
	return may("installation.id", from.ID) && may("installation.type", from.Type) && may("sender.bot", "true")
}

// circleWarnings say each circle, and the way out of it.
func circleWarnings(c *config.Config) (all []string) {
	for _, way := range circles(c) {
		steps := make([]string, len(way))
		for i, t := range way {
			steps[i] = fmt.Sprintf("posts through %s, whose events go to target %s", t.Installation, way[(i+1)%len(way)].Name)
		}
		said := "target " + way[0].Name + " " + strings.Join(steps, ", which ")
		all = append(all, fmt.Sprintf("%s: messages may go round for ever, so each target of the circle posts %d a minute at most; "+
			`end it with match on one of them, such as match = { "conversation.id" = "C02" }, or with targets = […] of an installation`, said, cmp.Or(c.Delivery.LoopLimit, outbound.PaceMost)))
	}
	return all
}

// warnOfCircles says in the log what check says.
func warnOfCircles(c *config.Config, log *slog.Logger) {
	for _, w := range circleWarnings(c) {
		log.Warn("targets go in a circle", "detail", w)
	}
}

// circling are the names of the targets that are part of a circle.
func circling(c *config.Config) map[string]bool {
	names := map[string]bool{}
	for _, t := range c.Targets {
		if roundTrip(c, t) != nil {
			names[t.Name] = true
		}
	}
	return names
}
