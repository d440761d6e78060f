// Package examples_test runs the programs of this folder as a reader would.
package examples_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"leasehold/internal/freeport"
	"leasehold/internal/need"
)

const (
	key   = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	other = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// TestVerify sends each program requests that the official library signed, and some
// that it did not.
func TestVerify(t *testing.T) {
	file := filepath.Join(t.TempDir(), "app.signing-key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]func(t *testing.T) []string{
		"Python": func(t *testing.T) []string {
			need.Tool(t, "python3", "python3")
			return []string{"python3", "verify.py"}
		},
		"JavaScript": func(t *testing.T) []string { need.Tool(t, "node", "nodejs"); return []string{"node", "verify.mjs"} },
		"Perl":       func(t *testing.T) []string { need.Tool(t, "perl", "perl"); return []string{"perl", "verify.pl"} },
		"Go": func(t *testing.T) []string {
			binary := filepath.Join(t.TempDir(), "verify")
			if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./verify").CombinedOutput(); err != nil {
				t.Fatalf("build: %v\n%s", err, out)
			}
			return []string{binary}
		},
	} {
		t.Run(name+" takes what is signed with its key, now, and nothing else", func(t *testing.T) {
			t.Parallel()
			argv := program(t)
			url := serve(t, append(argv, file))
			body := []byte(`{"type":"message","data":{"text":"grüß dich <&>"}}`)
			for _, c := range []struct {
				what   string
				want   int
				sign   []string // with which keys
				age    time.Duration
				change func(h http.Header, body []byte) []byte
			}{
				{"a signed one", http.StatusNoContent, []string{key}, 0, nil},
				{"one signed with another key, too", http.StatusNoContent, []string{other, key}, 0, nil},
				{"one signed with another key", http.StatusUnauthorized, []string{other}, 0, nil},
				{"one of an hour ago", http.StatusUnauthorized, []string{key}, time.Hour, nil},
				{"one of the next hour", http.StatusUnauthorized, []string{key}, -time.Hour, nil},
				{"another body", http.StatusUnauthorized, []string{key}, 0, func(_ http.Header, b []byte) []byte { return append(b, ' ') }},
				{"another id", http.StatusUnauthorized, []string{key}, 0, func(h http.Header, b []byte) []byte { h.Set("webhook-id", "msg_2"); return b }},
				{"no time", http.StatusUnauthorized, []string{key}, 0, func(h http.Header, b []byte) []byte { h.Del("webhook-timestamp"); return b }},
				{"no signature", http.StatusUnauthorized, nil, 0, nil},
			} {
				at := time.Now().Add(-c.age)
				h := http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)}}
				signatures := ""
				for i, k := range c.sign {
					if i > 0 {
						signatures += " "
					}
					signatures += signed(t, k, at, body)
				}
				h.Set("webhook-signature", signatures)
				sent := bytes.Clone(body)
				if c.change != nil {
					sent = c.change(h, sent)
				}
				if got := post(t, url, h, sent); got != c.want {
					t.Errorf("%s: got %d, want %d", c.what, got, c.want)
				}
			}
		})
	}
}

func signed(t *testing.T, key string, at time.Time, body []byte) string {
	t.Helper()
	w, err := standardwebhooks.NewWebhook(key)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := w.Sign("msg_1", at, body)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

// serve starts a program with an address of its own behind argv, and returns its URL
// once it listens.
func serve(t *testing.T, argv []string) string {
	t.Helper()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(freeport.Of(t)))
	var said bytes.Buffer // read after the program has ended
	cmd := exec.CommandContext(t.Context(), argv[0], append(argv[1:], address)...)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if _ = cmd.Wait(); t.Failed() {
			t.Logf("%s said:\n%s", argv[0], said.String())
		}
	})
	for deadline := time.Now().Add(time.Minute); ; {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = c.Close()
			return "http://" + address + "/"
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not listen: %v", argv[0], err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func post(t *testing.T, url string, h http.Header, body []byte) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = h
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(fmt.Errorf("post: %w", err))
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
