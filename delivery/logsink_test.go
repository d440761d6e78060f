package delivery

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLogTarget(t *testing.T) {
	t.Run("an event is one record with its envelope", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, log := newOutbox(), &logbook{}
			b := start(t, box, Options{Log: log.logger(), Node: Node{Name: "gw"}}, Target{Name: "log", Kind: "log"})
			box.say("acme", "C1", "log")
			b.hold("acme")
			time.Sleep(time.Second)
			records := log.find("event")
			same(t, "records", len(records), 1)
			r := records[0]
			same(t, "event", r["event"], any("evt_1"))
			same(t, "installation", r["installation"], any("acme"))
			same(t, "type", r["type"], any("message"))
			data := r["envelope"].(map[string]any)["data"].(map[string]any)
			same(t, "text in the envelope", data["text"], any("hi"))
			same(t, "delivered in the store", box.count("log", Delivered), 1)
		})
	})

	t.Run("a text handler prints the envelope as JSON", func(t *testing.T) {
		var out bytes.Buffer
		s := logSink{slog.New(slog.NewTextHandler(&out, nil))}
		s.Deliver(t.Context(), Delivery{EventID: "evt_1", Envelope: []byte(`{"type":"message"}`)})
		if want := `envelope="{\"type\":\"message\"}"`; !strings.Contains(out.String(), want) {
			t.Errorf("got %s, want it to hold %s", out.String(), want)
		}
	})
}

func TestLogLines(t *testing.T) {
	t.Run("delivered, delivery failed, dead letter and the circuit's two say what scripts rely on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box, log, began := newOutbox(), &logbook{}, time.Now()
			sink := &fakeSink{answer: func(_ context.Context, d Delivery) Result {
				switch {
				case d.EventID == "evt_1":
					return Result{Outcome: Refused, Reason: "answered 400: no"}
				case time.Since(began) < 30*time.Second:
					return Result{Outcome: Down, Reason: "refused"}
				}
				return Result{Outcome: Taken}
			}}
			b := start(t, box, Options{Log: log.logger()}, Target{Name: "app", Sink: sink, MaxAge: 10 * time.Minute})
			box.say("acme", "C1", "app")
			box.say("acme", "C2", "app")
			b.hold("acme")
			time.Sleep(20 * time.Minute)
			for msg, want := range map[string]map[string]any{
				"delivered":       {"level": "DEBUG", "event": "evt_2", "target": "app", "installation": "acme", "delivery": "msg_2_app", "attempt": 1.0, "latency_ms": 0.0},
				"delivery failed": {"level": "INFO", "event": "evt_1", "target": "app", "attempt": 1.0, "error": "answered 400: no", "next": any(nil)},
				"dead letter":     {"level": "INFO", "event": "evt_1", "target": "app", "error": "older than 10m; what kept it: answered 400: no"},
				"circuit open":    {"level": "INFO", "target": "app", "reason": "refused", "outage": false, "until": any(nil)},
				"circuit closed":  {"level": "INFO", "target": "app", "open_s": any(nil)},
			} {
				var record map[string]any
				for _, r := range log.find(msg) {
					if want["event"] == nil || r["event"] == want["event"] {
						record = r
						break
					}
				}
				for key, value := range want {
					got, ok := record[key]
					if !ok || value != nil && got != value {
						t.Errorf("got %v for %s of %q, want %v", got, key, msg, value)
					}
				}
			}
			same(t, "dead letters", len(log.find("dead letter")), 1)
			same(t, "openings", len(log.find("circuit open")), len(log.find("circuit closed")))
		})
	})
}
