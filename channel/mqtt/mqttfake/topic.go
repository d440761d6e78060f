package mqttfake

import "strings"

const shared = "$share/"

// matches reports whether a filter covers a topic.
func matches(filter, topic string) bool {
	if rest, ok := strings.CutPrefix(filter, shared); ok {
		_, filter, _ = strings.Cut(rest, "/")
	}
	if strings.HasPrefix(topic, "$") && (filter[0] == '+' || filter[0] == '#') {
		return false
	}
	want, have := strings.Split(filter, "/"), strings.Split(topic, "/")
	for i, level := range want {
		switch {
		case level == "#":
			return true
		case i >= len(have), level != "+" && level != have[i]:
			return false
		}
	}
	return len(want) == len(have)
}
