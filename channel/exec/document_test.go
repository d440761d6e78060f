package exec

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The document shows the protocol in lines that begin with "> " and "< ". Each must
// be one that the type hears or says, with no key that it does not know.
func TestTheDocumentSpeaksTheProtocol(t *testing.T) {
	text, err := os.ReadFile("../../docs/exec.md")
	if err != nil {
		t.Fatal(err)
	}
	var cursor any
	var empty struct{}
	theirs := map[string]any{
		"hello": &hello{}, "ready": &ready{}, "event": &told{}, "cursor": &cursor, "send_result": &result{}, "call_result": &result{}, "status": &status{}, "log": &remark{}, "pong": &empty,
	}
	ours := map[string]any{"start": &start{}, "ack": &ack{}, "answer": &reply{}, "send": &send{}, "call": &call{}, "ping": &ping{}, "stop": &stop{}}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([<>]) (\{.*\})$`).FindAllSubmatch(text, -1) {
		kind, body, err := parse(m[2])
		if err != nil {
			t.Errorf("%s: %v", m[2], err)
			continue
		}
		known := theirs
		if string(m[1]) == "<" {
			known = ours
		}
		into, ok := known[kind]
		if !ok {
			t.Errorf("%s: got %q, want a line that somebody says", m[2], kind)
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.DisallowUnknownFields()
		if err := dec.Decode(into); err != nil {
			t.Errorf("%s: %v", m[2], err)
		}
		if kind == "event" {
			if _, err := decode(body); err != nil {
				t.Errorf("%s: %v", m[2], err)
			}
		}
		seen[kind] = true
	}
	for kind := range theirs {
		if !seen[kind] {
			t.Errorf("got no %s in the document, want each line shown", kind)
		}
	}
	for kind := range ours {
		if !seen[kind] {
			t.Errorf("got no %s in the document, want each line shown", kind)
		}
	}

	t.Run("its numbers are the numbers", func(t *testing.T) {
		// Deadlines and bounds, as the document words them.
		words := strings.Join(strings.Fields(string(text)), " ")
		for want, is := range map[string]bool{
			"within 10 s of its start": times.hello.Seconds() == 10, "within 30 s of `hello`": times.ready.Seconds() == 30, "`call_result` within 30 s": callTimeout.Seconds() == 30, "every 30 s": times.ping.Seconds() == 30,
			"after 90 s without one the program is killed": times.dead.Seconds() == 90, "ended after 0.5 s": times.leave.Seconds() == 0.5, "after another 0.3 s": times.end.Seconds() == 0.3,
			"A line has at most 1 MiB": maxLine == 1<<20, "At most 256 events or 4 MiB": depth == 256 && pendingMax == 4<<20, "At most 64 wait at once": maxAsks == 64, "10 lines a second reach the log, 200 at once": linesPerSecond == 10 && linesAtOnce == 200,
		} {
			if !is || !strings.Contains(words, want) {
				t.Errorf("%q: got another number here, or no such words there", want)
			}
		}
	})

	t.Run("its exit statuses are the exit statuses", func(t *testing.T) {
		rows := regexp.MustCompile(`(?m)^\| (7\d)\b`).FindAllStringSubmatch(string(text), -1)
		var got []string
		for _, r := range rows {
			got = append(got, r[1])
		}
		if want := []string{"75", "77", "78"}; !slices.Equal(got, want) || exitTryLater != 75 || exitAuth != 77 || exitConfig != 78 {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
