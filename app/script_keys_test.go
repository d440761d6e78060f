package app_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"leasehold/admin"
	"leasehold/internal/certtest"
)

// verify judges a call by the key that the program knows, as the official library does.
func (p *program) verify(body []byte, h http.Header) bool {
	p.signatures = len(strings.Fields(h.Get("webhook-signature")))
	if p.key == "" {
		return true
	}
	webhook, err := standardwebhooks.NewWebhook(p.key)
	if err == nil {
		err = webhook.Verify(body, h)
	}
	if err != nil {
		p.refused++
	}
	return err == nil
}

func cmdKnows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: knows file")
	}
	key, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	p := of(ts).program
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key = strings.TrimSpace(string(key))
}

func cmdRefused(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: refused n")
	}
	p := of(ts).program
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := strconv.Itoa(p.refused); got != args[0] {
		ts.Fatalf("calls that the program refused: got %s, want %s", got, args[0])
	}
}

var keyID = regexp.MustCompile(`key_[0-9a-f]{12}`)

// cmdRetire retires the key whose id a file holds, with more arguments of the command.
func cmdRetire(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: retire file arg…")
	}
	text, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(ts.Exec("leasehold", append([]string{"keys", "retire", keyID.FindString(string(text))}, args[1:]...)...))
}

// cmdSigned pushes events until one arrives with as many signatures. The deadline is
// that of key-reload, and what a loaded machine takes.
func cmdSigned(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: signed bot n")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	p := of(ts).program
	for deadline := time.Now().Add(90 * time.Second); ; {
		cmdPush(ts, false, []string{args[0], "1"})
		time.Sleep(200 * time.Millisecond)
		p.mu.Lock()
		got := p.signatures
		p.mu.Unlock()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("signatures: got %d, want %d", got, want)
		}
	}
}

// cmdCertify makes a certificate for the loopback, which is its own authority, in place of
// the one that was there.
func cmdCertify(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: certify cert key")
	}
	pair, err := certtest.New(time.Now().UnixNano())
	ts.Check(err)
	ts.Check(pair.Put(ts.MkAbs(args[0]), ts.MkAbs(args[1])))
}

// cmdPort asks the program that runs where it listens, for $PORT.
func cmdPort(ts *testscript.TestScript, _ bool, args []string) {
	var o admin.Overview
	await(ts, func() (string, bool) {
		out, err := command(ts, append([]string{"status", "--json"}, args...)...)
		if err == nil {
			err = json.Unmarshal(out, &o)
		}
		return fmt.Sprintf("got %v, %s, want an address", err, out), err == nil && len(o.Node.Listen) > 0
	})
	_, port, err := net.SplitHostPort(o.Node.Listen[0])
	ts.Check(err)
	ts.Setenv("PORT", port)
}

// cmdHidden searches files for the secret that a file holds: all of its text, its last
// word, and what follows a prefix that says what it is.
func cmdHidden(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: hidden file path…")
	}
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	text := strings.TrimSpace(string(b))
	word := text[strings.LastIndexByte(text, ' ')+1:]
	forms := []string{text, word}
	for prefix, parts := range map[string]int{"whsec_": 2, "lhmk_": 2, "lht_": 3} {
		if strings.HasPrefix(word, prefix) {
			forms = append(forms, strings.SplitN(word, "_", parts)[parts-1])
		}
	}
	for _, form := range forms {
		cmdFinds(ts, !neg, append([]string{form}, args[1:]...))
	}
}
