package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"leasehold/config"
	"leasehold/internal/redact"
)

// lines hands on what is written, a write at a time.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// keepLog undoes with the test what it does to package log.
func keepLog(t *testing.T) {
	t.Helper()
	w, flags, prefix := log.Writer(), log.Flags(), log.Prefix()
	t.Cleanup(func() {
		log.SetOutput(w)
		log.SetFlags(flags)
		log.SetPrefix(prefix)
	})
}

func TestWhatLibrariesPrint(t *testing.T) {
	const planted = "planted-secret-77"
	secrets := redact.New()
	secrets.Add(planted)
	p := &program{redact: secrets}

	t.Run("a body behind a 204 is a record at debug level, redacted", func(t *testing.T) {
		keepLog(t)
		out := make(lines, 10)
		p.logger(config.Log{Level: "debug", Format: "json"}, out)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://app.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := talkative(t, "HTTP/1.1 204 No Content\r\n\r\n"+planted).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		select {
		case line := <-out:
			var record struct{ Level, Msg string }
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatalf("got %q, want a JSON record: %v", line, err)
			}
			if record.Level != "DEBUG" || !strings.HasPrefix(record.Msg, "Unsolicited response") || strings.Contains(line, planted) {
				t.Errorf("got %s, want net/http's line at debug level without the secret", line)
			}
		case <-time.After(time.Minute):
			t.Fatal("got nothing, want a record")
		}
	})

	t.Run("it is silent at the default level", func(t *testing.T) {
		keepLog(t)
		var out bytes.Buffer
		p.logger(config.Log{Level: "info", Format: "text"}, &out)
		log.Print("Unsolicited response received on idle HTTP channel")
		if out.Len() != 0 {
			t.Errorf("got %q, want nothing", out.String())
		}
	})
}

// talkative is a client of one server that sends the same to everybody.
func talkative(t *testing.T, says string) *http.Client {
	t.Helper()
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		serving.Go(func() {
			r, err := http.ReadRequest(bufio.NewReader(theirs))
			if err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(theirs, says)
			}
		})
		t.Cleanup(func() { _ = theirs.Close() })
		return ours, nil
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}
