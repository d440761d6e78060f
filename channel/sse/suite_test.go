package sse_test

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"leasehold/channel/channeltest"
	"leasehold/channel/sse"
	"leasehold/channel/sse/ssefake"
)

func TestSuite(t *testing.T) {
	channeltest.Run(t, channeltest.Harness{
		Spec:    sse.Spec,
		Steps:   ssefake.Steps(),
		Resumes: true,
		Refusal: "401 Unauthorized: invalid token",
		Start: func(ln net.Listener, token string, step func(string)) channeltest.Platform {
			p := &fake{ssefake.New(ssefake.Options{
				Token: func(string) string { return token },
				Step:  func(_, name string) { step(name) },
			})}
			go func() { _ = p.Serve(ln) }()
			return p
		},
	})
}

// fake is the platform in the suite's hands.
type fake struct{ *ssefake.Server }

func (f *fake) Config(address, account string, quick bool) json.RawMessage {
	var c map[string]any
	if err := json.Unmarshal(f.Server.Config("http://"+address, account, map[string]string{"env": "TOKEN"}), &c); err != nil {
		panic(err)
	}
	c["account"] = account
	if quick {
		c["url"], c["dead_after"], c["answer_within"] = c["url"].(string)+"?comments=500ms", "2s", "2s"
	}
	raw, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return raw
}

func (f *fake) Push(account string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%06d", account, f.Pushed(account)+i+1)
	}
	f.Server.Push(account, n)
	return ids
}

func (f *fake) PushOdd(account string, what channeltest.Oddity) string {
	e := ssefake.Event{ID: "unknown-1", Name: "brand_new", Data: `{"what":[{"is":null}]}`}
	if what == channeltest.Oversized {
		e = ssefake.Event{ID: "huge-1", Data: `{"text":"` + strings.Repeat("x", 3<<20) + `"}`}
	}
	f.PushEvent(account, e)
	return e.ID
}

func (f *fake) Garble(account string) { f.Raw(account, ssefake.Garbage()) }

func (f *fake) Unacked(string) []string { return nil }

func (f *fake) Connections(account string) int { return len(f.Server.Connections(account)) }

func (f *fake) Complaints(account string) []string { return f.Violations(account) }

func (f *fake) Drop(account string, on bool) {
	f.Behave(account, ssefake.Behaviour{Drop: on})
}
