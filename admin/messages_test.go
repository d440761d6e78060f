package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/delivery/outbound"
)

// running makes the world that of a running program.
func (w *world) running(links map[string]admin.Status) *process {
	p := &process{links: links}
	w.options.Mode, w.options.Process = admin.Running, p
	return p
}

// posted decodes the message in an answer.
func (w *world) posted(a answer) admin.MessageView {
	w.t.Helper()
	var m admin.MessageView
	if err := json.Unmarshal([]byte(a.body), &m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

func TestPostMessage(t *testing.T) {
	t.Run("a message is stored, who sends it is woken, and the answer names it", func(t *testing.T) {
		w := newWorld(t)
		p := w.running(map[string]admin.Status{"acme": {State: "backoff", Reason: "disconnected"}})
		w.put("acme")
		m := w.posted(w.want(w.do("POST", "/v1/installations/acme/messages", `{"conversation":"C1","thread":"T1","text":"hi","expires_in":"1d"}`), http.StatusAccepted))
		if m.State != "queued" || m.Op != "send" || m.WaitsFor != "the connection of acme (backoff disconnected)" || m.ExpiresAt.Sub(m.CreatedAt) != 24*time.Hour {
			t.Errorf("got %+v, want it queued for a day, waiting for its connection", m)
		}
		if !slices.Contains(p.woken, "messages of acme") {
			t.Errorf("woken: got %v, want the lease's messages", p.woken)
		}
		got, err := w.client().Message(t.Context(), m.ID)
		if err != nil || got.Text != "hi" || got.Thread != "T1" {
			t.Errorf("got %+v, %v, want the message", got, err)
		}
	})

	t.Run("one that waits for a limit says for which; one that has its time is not told so", func(t *testing.T) {
		w := newWorld(t)
		p := w.running(map[string]admin.Status{"acme": {State: "connected"}})
		p.limited = map[string]string{"acme/acme/C1": "the limit of acme: 1/s in one conversation"}
		w.put("acme")
		m := w.posted(w.want(w.do("POST", "/v1/installations/acme/messages", `{"conversation":"C1","text":"hi"}`), http.StatusAccepted))
		if m.WaitsFor != "the limit of acme: 1/s in one conversation" {
			t.Errorf("got %q, want the limit", m.WaitsFor)
		}
		m = w.posted(w.want(w.do("POST", "/v1/installations/acme/messages", `{"conversation":"C2","text":"hi"}`), http.StatusAccepted))
		if m.WaitsFor != "" {
			t.Errorf("got %q, want nothing that it waits for", m.WaitsFor)
		}
	})

	t.Run("a sign of typing does not wait for long, unless it shall", func(t *testing.T) {
		w := newWorld(t)
		w.running(nil)
		w.put("acme")
		for body, want := range map[string]time.Duration{
			`{"op":"typing","conversation":"C1"}`:                    10 * time.Second,
			`{"op":"typing","conversation":"C1","expires_in":"30s"}`: 30 * time.Second,
			`{"conversation":"C1","text":"hi"}`:                      15 * time.Minute,
		} {
			m := w.posted(w.want(w.do("POST", "/v1/installations/acme/messages", body), http.StatusAccepted))
			if got := m.ExpiresAt.Sub(m.CreatedAt); got != want {
				t.Errorf("%s: got %s, want %s", body, got, want)
			}
		}
	})

	t.Run("one with the key of another is that other one", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		first, err := w.client().Post(t.Context(), "acme", admin.Post{Conversation: "C1", Text: "one", IdempotencyKey: "k"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		second, err := w.client().Post(t.Context(), "acme", admin.Post{Conversation: "C1", Text: "one", IdempotencyKey: "k"}, 0)
		if err != nil || second.ID != first.ID || second.Text != "one" {
			t.Errorf("got %+v, %v, want the first", second, err)
		}
		if first.WaitsFor != "leasehold run" {
			t.Errorf("waits for: got %q, want leasehold run", first.WaitsFor)
		}
	})

	t.Run("one with the key of another, and other content, is refused", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		w.want(w.do("POST", "/v1/installations/acme/messages", `{"conversation":"C","text":"x","idempotency_key":"k"}`), http.StatusAccepted)
		w.want(w.do("POST", "/v1/installations/acme/messages", `{"conversation":"C","text":"x","format":"plain","idempotency_key":"k"}`), http.StatusAccepted)
		for _, body := range []string{
			`{"conversation":"C","text":"y","idempotency_key":"k"}`,
			`{"conversation":"D","text":"x","idempotency_key":"k"}`,
			`{"conversation":"C","thread":"T","text":"x","idempotency_key":"k"}`,
			`{"conversation":"C","text":"x","format":"markdown","idempotency_key":"k"}`,
		} {
			w.want(w.do("POST", "/v1/installations/acme/messages", body), http.StatusConflict, "was posted before under this key, with other content; nothing new was sent")
		}
	})

	t.Run("who waits is told what became of it as soon as it is known", func(t *testing.T) {
		w := newWorld(t)
		w.running(nil)
		w.put("acme")
		w.hold()
		sent := make(chan error, 1)
		go func() { // who sends
			for {
				items, err := w.store.Outgoing(t.Context(), "acme", 0, 1)
				if err != nil || len(items) == 0 {
					continue
				}
				if _, err = w.store.BeginSending(t.Context(), w.term, items[0].Seq); err == nil {
					err = w.store.EndSending(t.Context(), outbound.End{Term: w.term, Seq: items[0].Seq, State: outbound.Sent, Receipt: []byte(`{"message_id":"17"}`)})
				}
				sent <- err
				return
			}
		}()
		a := w.do("POST", "/v1/installations/acme/messages?wait=30s", `{"conversation":"C1","text":"hi"}`)
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if m := w.posted(w.want(a, http.StatusOK)); m.State != "sent" || m.Receipt.MessageID != "17" || m.WaitsFor != "" {
			t.Errorf("got %+v, want it sent as 17", m)
		}
	})

	t.Run("who waits in vain is told that it still waits", func(t *testing.T) {
		w := newWorld(t)
		w.running(nil)
		w.put("acme")
		m := w.posted(w.want(w.do("POST", "/v1/installations/acme/messages?wait=20ms", `{"conversation":"C1","text":"hi"}`), http.StatusAccepted))
		if m.WaitsFor != "a node that has its installation" {
			t.Errorf("got %+v, want it to wait for a node", m)
		}
	})

	t.Run("what cannot be sent is refused, with what to do", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		w.put("off")
		if _, err := w.client().SetEnabled(t.Context(), "off", false); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			path, body string
			status     int
			words      string
		}{
			{"nobody/messages", `{}`, 404, "there is no installation nobody"},
			{"filed/messages", `{}`, 404, "installation filed is set in leasehold.toml:12, which was not applied yet"},
			{"off/messages", `{"conversation":"C","text":"x"}`, 409, "installation off is disabled, so nothing would send it; run leasehold installations enable off"},
			{"acme/messages", `{"conversation":"C","op":"edit","text":"x"}`, 422, "is of type chat, which cannot edit"},
			{"acme/messages", `{"conversation":"C","op":"shout"}`, 422, "op: must be send, edit"},
			{"acme/messages", `{"conversation":"C","native":{}}`, 422, "takes no native call"},
			{"acme/messages", `{"conversation":"C","native":null}`, 422, "text and native are empty"},
			{"acme/messages", `{"text":"x"}`, 422, "conversation: is missing"},
			{"acme/messages", `{"conversation":"C","text":"x","expires_in":"0s"}`, 422, "expires_in: must be from 1s to 30d (got 0s)"},
			{"acme/messages", `{"conversation":"C","text":"x","expires_in":"31d"}`, 422, "expires_in: must be from 1s to 30d"},
			{"acme/messages", `{"conversation":"C","text":"x","idempotency_key":"` + strings.Repeat("k", 201) + `"}`, 422, "idempotency_key: must be at most 200 bytes"},
			{"acme/messages", `{"conversation":"C","text":"x","format":"html"}`, 422, "format: must be plain or markdown (got "},
			{"acme/messages", "{\"conversation\":\"C\xff\",\"text\":\"x\"}", 422, "the body is not valid UTF-8"},
			{"acme/messages?wait=2h", `{"conversation":"C","text":"x"}`, 422, "wait: must be a duration from 0s to 1m0s"},
		} {
			w.want(w.do("POST", "/v1/installations/"+c.path, c.body), c.status, c.words)
		}
		if page, err := w.client().Messages(t.Context(), nil); err != nil || len(page.Items) > 0 {
			t.Errorf("got %v, %v stored, want nothing", page.Items, err)
		}
	})

	t.Run("messages are listed page by page, without their content", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		for n := range 5 {
			if _, err := w.client().Post(t.Context(), "acme", admin.Post{Conversation: "C1", Text: fmt.Sprint(n, secretValue)}, 0); err != nil {
				t.Fatal(err)
			}
		}
		var seen []int64
		for q := (url.Values{"limit": {"2"}, "state": {"queued"}}); ; {
			page, err := w.client().Messages(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Items {
				seen = append(seen, m.Seq)
				if m.Text != "" {
					t.Errorf("got text %q in a list, want none", m.Text)
				}
			}
			if page.Next == "" {
				break
			}
			q.Set("before", page.Next)
		}
		if !slices.Equal(seen, []int64{5, 4, 3, 2, 1}) {
			t.Errorf("got %v, want each once, the newest first", seen)
		}
		w.want(w.do("GET", "/v1/messages?state=lost", ""), 422, "state: must be one of queued, sending")
		w.want(w.do("GET", "/v1/messages/out_x", ""), 404, "there is no message out_x")
	})

	t.Run("a secret in a text is not shown", func(t *testing.T) {
		w := newWorld(t)
		w.want(w.do("PUT", "/v1/installations/acme", `{"type":"chat","config":{"url":"ws://x","token":{"env":"THERE"}}}`), http.StatusCreated)
		m, err := w.client().Post(t.Context(), "acme", admin.Post{Conversation: "C1", Text: "the token is " + secretValue}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(w.do("GET", "/v1/messages/"+m.ID, "").body, secretValue) {
			t.Error("got the secret in an answer, want it taken out")
		}
	})
}
