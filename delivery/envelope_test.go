package delivery

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf8"

	"leasehold/channel"
)

var update = flag.Bool("update", false, "write the golden envelopes anew")

func stored(t testing.TB, e channel.Event) Event {
	t.Helper()
	body, err := marshal(e, 0) // as the engine writes it
	if err != nil {
		t.Fatal(err)
	}
	return Event{
		Seq: 7, ID: "evt_01JDXK3Q", Installation: "acme", ChannelType: "slack", Labels: map[string]string{"tenant": "acme"},
		AcceptedAt: time.Date(2026, 11, 30, 10, 12, 45, 6_000_000, time.FixedZone("CET", 3600)), Body: body,
	}
}

func TestEnvelope(t *testing.T) {
	box := Node{Name: "gw-117", Labels: map[string]string{"site": "berlin"}}
	sent := time.Date(2026, 11, 30, 9, 12, 44, 381_999_999, time.UTC)
	for _, c := range []struct {
		name  string
		event channel.Event
		node  Node
		noRaw bool
	}{
		{name: "message", node: box, event: channel.Event{
			ID: "Ev1", Type: "message", Workspace: "T024BE7LD", MessageID: "1764493964.000200", Time: sent,
			Conversation: channel.Ref{ID: "C02ABC", Kind: "channel", Title: "deploys"}, Thread: "1764493900.000100",
			Sender: channel.Ref{ID: "U061F7AUR", Name: "Ada"}, Text: "<@U0LAN0Z89> deploy api & co <now>", Body: "deploy api & co <now>",
			Addressed: true, Mentions: []string{"U0LAN0Z89"},
			Attachments: []channel.Attachment{{Name: "a.png", MIME: "image/png", Size: 48211, URL: "https://files.test/a.png?x=1&y=2"}},
			Raw:         json.RawMessage(`{"type":"message","blocks":[{"b":"<>&"}]}`),
		}},
		{name: "message-without-raw", node: box, noRaw: true, event: channel.Event{Type: "message", Text: "hi", Raw: json.RawMessage(`{"a":1}`), Late: true}},
		{name: "command", node: box, event: channel.Event{Type: "command", Time: sent, Command: &channel.Command{Name: "/deploy", Args: "api"}, Addressed: true}},
		{name: "action", event: channel.Event{
			Type: "action", Time: sent, MessageID: "m1", Sender: channel.Ref{ID: "U1", Bot: true, Self: true},
			Action: &channel.Action{ID: "approve", Value: "yes", Values: json.RawMessage(`{"n":[1,2]}`), Expires: sent.Add(time.Minute)},
		}},
		{name: "reaction", event: channel.Event{Type: "reaction", Time: sent, MessageID: "m1", ReplyTo: "m0", Reaction: &channel.Reaction{Emoji: "eyes"}}},
		{name: "device", event: channel.Event{
			Type: "device", Conversation: channel.Ref{ID: "devices/7/temperature", Kind: "topic"}, Raw: json.RawMessage("21.5"),
			Device: &channel.Device{QoS: 1, Retain: true, Properties: map[string]string{"unit": "C"}},
		}},
		{name: "text-payload", event: channel.Event{Type: "raw", Payload: []byte("temp=21.5°\n"), ContentType: "text/plain"}},
		{name: "binary-payload", event: channel.Event{Type: "raw", Payload: []byte{0, 1, 0xff, 0xfe}, ContentType: "application/octet-stream"}},
		{name: "empty-payload", event: channel.Event{Type: "raw", Payload: []byte{}}},
		{name: "heartbeat", event: channel.Event{Type: "heartbeat"}},
	} {
		t.Run(c.name+" is sent as documented", func(t *testing.T) {
			got, typ, err := seal(stored(t, c.event), c.node, !c.noRaw, true)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "type", typ, c.event.Type)
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, got, "", "  "); err != nil {
				t.Fatalf("got %s, want JSON: %v", got, err)
			}
			pretty.WriteByte('\n')
			file := filepath.Join("testdata", "envelope", c.name+".json")
			if *update {
				if err := os.WriteFile(file, pretty.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "envelope", pretty.String(), string(want))
		})
	}

	t.Run("it says where an answer is posted, unless none can be", func(t *testing.T) {
		in := channel.Event{Type: "message", Conversation: channel.Ref{ID: "C1"}}
		for _, c := range []struct {
			name    string
			event   channel.Event
			replies bool
			want    string
		}{
			{"a conversation", in, true, "/v1/events/evt_01JDXK3Q/reply"},
			{"a target that shall not speak, or a type that cannot", in, false, ""},
			{"no conversation to answer in", channel.Event{Type: "heartbeat"}, true, ""},
		} {
			body, _, err := seal(stored(t, c.event), Node{}, true, c.replies)
			if err != nil {
				t.Fatal(err)
			}
			var got envelope
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			same(t, c.name, got.Data.Reply, c.want)
		}
	})

	t.Run("every attempt sends the same bytes", func(t *testing.T) {
		e := stored(t, channel.Event{Type: "message", Text: "hi"})
		e.Labels = map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}
		first, _, _ := seal(e, box, true, true)
		for range 50 {
			again, _, _ := seal(e, box, true, true)
			same(t, "envelope", string(again), string(first))
		}
	})
}

func FuzzEnvelope(f *testing.F) {
	f.Add("hi", []byte("x"), []byte(`{"a":1}`))
	f.Add("\xff\u2028<b>", []byte{0, 255}, []byte(`[`))
	f.Fuzz(func(t *testing.T, text string, payload, raw []byte) {
		e := channel.Event{Type: "raw", Text: text, Payload: payload}
		if json.Valid(raw) {
			e.Raw = raw
		}
		got, _, err := seal(stored(t, e), Node{}, true, true)
		if err != nil || !json.Valid(got) || !utf8.Valid(got) {
			t.Fatalf("got %q and %v, want JSON in UTF-8", got, err)
		}
		var back envelope
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatal(err)
		}
		if back.Data.Payload == nil {
			same(t, "payload", len(payload), 0)
			return
		}
		bytesBack := []byte(*back.Data.Payload)
		if back.Data.Encoding == "base64" {
			if bytesBack, err = base64.StdEncoding.DecodeString(*back.Data.Payload); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "payload", string(bytesBack), string(payload))
	})
}
