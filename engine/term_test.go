package engine

import (
	"fmt"
	"testing"

	"leasehold/channel"
)

func TestSaid(t *testing.T) {
	for _, c := range []struct {
		name string
		info channel.Info
		want string
	}{
		{"a platform that tells nothing adds nothing", channel.Info{}, "[took_ms 7]"},
		{"what it tells is logged", channel.Info{Identity: "bot", Connections: 2}, "[took_ms 7 identity bot connections 2]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fmt.Sprint(said(c.info, "took_ms", 7)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
