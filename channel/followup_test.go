package channel

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestFollowUp(t *testing.T) {
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	t.Run("it ends when the platform says, after a quarter of an hour by default, and never later than in a day", func(t *testing.T) {
		for _, c := range []struct{ said, want time.Time }{
			{now.Add(time.Hour), now.Add(time.Hour)},
			{now.Add(-time.Hour), now.Add(-time.Hour)},
			{time.Time{}, now.Add(15 * time.Minute)},
			{now.Add(48 * time.Hour), now.Add(24 * time.Hour)},
		} {
			if got := (FollowUp{Expires: c.said}).Until(now); !got.Equal(c.want) {
				t.Errorf("%s: got %s, want %s", c.said, got, c.want)
			}
		}
	})
	t.Run("it shows nowhere, whoever prints or stores the event", func(t *testing.T) {
		const address = "https://platform.example/answers/planted"
		e := Event{ID: "1", FollowUp: FollowUp{Address: NewSecret(address)}}
		m := Message{ID: "1", FollowUp: NewSecret(address)}
		stored, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if shown := fmt.Sprintf("%s %+v %#v %+v %#v", stored, e, e, m, m); strings.Contains(shown, "planted") || strings.Contains(string(stored), "edacted") {
			t.Errorf("got %s, want nothing of the address", shown)
		}
	})
}
