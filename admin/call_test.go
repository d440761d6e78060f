package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/delivery/outbound"
	"leasehold/internal/fault"
)

func TestCall(t *testing.T) {
	path := "/v1/installations/acme/call"
	up := map[string]admin.Status{"acme": {State: "connected"}}
	answering := func(t *testing.T, answer string, err error) *world {
		w := newWorld(t)
		w.options.Redact.Add(secretValue)
		w.running(up).call = func(context.Context, string, channel.Call) (json.RawMessage, error) {
			return json.RawMessage(answer), err
		}
		w.put("acme")
		return w
	}

	t.Run("what the platform answers is the answer, and the audit says who called what", func(t *testing.T) {
		w := newWorld(t)
		var got string
		w.running(up).call = func(_ context.Context, lease string, c channel.Call) (json.RawMessage, error) {
			got = fmt.Sprintf("%s %s %s %s", lease, c.Installation, c.Method, c.Params)
			return json.RawMessage(`{"ok":true}`), nil
		}
		w.put("acme")
		w.want(w.do("POST", path, `{"method":"chat.update","params":{"text":"<b>"}}`), http.StatusOK, `{"result":{"ok":true}}`)
		if want := `acme acme chat.update {"text":"<b>"}`; got != want {
			t.Errorf("got the call %s, want %s", got, want)
		}
		w.want(w.do("POST", path, `{"method":"users.list","params":null}`), http.StatusOK)
		if want := `acme acme users.list `; got != want {
			t.Errorf("got the call %q, want %q", got, want)
		}
		notes, err := w.client().Audit(t.Context(), nil)
		if err != nil || len(notes.Items) < 2 || notes.Items[1].Path != path+" chat.update" || notes.Items[1].Status != 200 {
			t.Errorf("got %+v and %v, want the call noted", notes.Items, err)
		}
		if strings.Contains(fmt.Sprint(notes), "<b>") {
			t.Errorf("got %+v, want nothing of what it was called with", notes.Items)
		}
	})

	t.Run("a secret in the answer is taken out", func(t *testing.T) {
		w := answering(t, `{"token":"`+secretValue+`"}`, nil)
		w.want(w.do("POST", path, `{"method":"auth.show"}`), http.StatusOK, `{"result":{"token":"[redacted]"}}`)
		w = answering(t, "", channel.Refused(errors.New("bad token "+secretValue)))
		w.want(w.do("POST", path, `{"method":"auth.show"}`), http.StatusUnprocessableEntity, "bad token [redacted]")
	})

	for name, c := range map[string]struct {
		err    error
		status int
		kind   fault.Kind
		words  string
	}{
		"a refusal is the caller's matter":     {channel.Refused(errors.New("no such method")), 422, fault.Conflict, "the platform refused the call: no such method"},
		"one that was not made may come again": {channel.NotSent(errors.New("killed")), 503, fault.Temporary, "the call was not made: killed; try again"},
		"a limit says when to come again":      {channel.RateLimited(errors.New("slow down"), 2500*time.Millisecond), 429, fault.Temporary, "slow down; try again in 3 s"},
		"a lost answer says so":                {errors.New("reset"), 502, fault.Conflict, "no answer (reset); the call may have been made: look at the platform"},
		"a late answer says so":                {fmt.Errorf("wait: %w", context.DeadlineExceeded), 504, fault.Conflict, "no answer within 30s"},
		"nobody has it":                        {outbound.ErrNotHeld, 503, fault.Temporary, "no node has installation acme yet"},
		"it is not connected":                  {outbound.ErrNotConnected, 503, fault.Temporary, "installation acme is not connected (connected), so nothing was called"},
		"its connection takes none":            {outbound.ErrNoCalls, 409, fault.Conflict, "the connection of installation acme takes no calls"},
	} {
		t.Run(name, func(t *testing.T) {
			w := answering(t, "", c.err)
			a := w.want(w.do("POST", path, `{"method":"m"}`), c.status, c.words, "urn:leasehold:fault:"+c.kind.String())
			if after := a.header.Get("Retry-After"); (after == "3") != (c.status == http.StatusTooManyRequests) {
				t.Errorf("Retry-After: got %q", after)
			}
		})
	}

	t.Run("an answer that is too large or no JSON is told, and not passed on", func(t *testing.T) {
		for _, answer := range []string{`"` + strings.Repeat("x", 1<<20) + `"`, "<html>", ""} {
			w := answering(t, answer, nil)
			w.want(w.do("POST", path, `{"method":"m"}`), http.StatusBadGateway, "the call was made; its answer is no JSON of at most 1048576 bytes")
		}
	})

	t.Run("what cannot be called is refused, and nothing is called", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		w.want(w.do("POST", path, `{"method":"m"}`), http.StatusServiceUnavailable, "nothing runs here; start it with leasehold run")
		w.running(up).call = func(context.Context, string, channel.Call) (json.RawMessage, error) {
			t.Error("got a call, want none")
			return nil, nil
		}
		w.put("off")
		if _, err := w.client().SetEnabled(t.Context(), "off", false); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			id, body string
			status   int
			words    string
		}{
			{"nobody", `{"method":"m"}`, 404, "there is no installation nobody"},
			{"off", `{"method":"m"}`, 409, "installation off is disabled"},
			{"acme", `{}`, 422, "method: must be the platform's name of a method"},
			{"acme", `{"method":"a b"}`, 422, "method: must be"},
			{"acme", `{"method":"a\nb"}`, 422, "method: must be"},
			{"acme", `{"method":"` + strings.Repeat("m", 201) + `"}`, 422, "at most 200 bytes"},
			{"acme", `{"method":"m","param":1}`, 422, `unknown field \"param\"`},
			{"acme", `{"method":"m","params":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "more than the 1 MiB"},
		} {
			w.want(w.do("POST", "/v1/installations/"+c.id+"/call", c.body), c.status, c.words)
		}
	})
}
