package delivery

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"leasehold/channel"
)

// knower is a program that knows one key, and takes what the official library finds
// to be signed with it.
type knower struct {
	mu      sync.Mutex // guards what follows
	key     string
	headers []http.Header
	refused int
}

func (k *knower) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		if z, err := gzip.NewReader(r.Body); err == nil {
			body = z
		}
	}
	b, _ := io.ReadAll(body)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.headers = append(k.headers, r.Header.Clone())
	webhook, err := standardwebhooks.NewWebhook(k.key)
	if err == nil {
		err = webhook.Verify(b, r.Header)
	}
	if err != nil {
		k.refused++
		http.Error(w, err.Error()+" "+k.key, http.StatusUnauthorized)
	}
}

func (k *knower) learn(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.key = key
}

// calls are how many there were, and how many of them were refused.
func (k *knower) calls() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return fmt.Sprintf("%d calls, %d refused", len(k.headers), k.refused)
}

func texts(keys ...string) (all []channel.Text) {
	for _, k := range keys {
		all = append(all, channel.NewText(k))
	}
	return all
}

func TestSignature(t *testing.T) {
	one, two, other := NewSigningKey(), NewSigningKey(), NewSigningKey()
	p := &knower{}
	srv := httptest.NewServer(p)
	defer srv.Close()
	deliver := func(s *httpSink, size int) Outcome {
		body := []byte(`{"type":"message","data":{"text":"` + strings.Repeat("ä", size) + `"}}`)
		return s.Deliver(t.Context(), Delivery{ID: "msg_1", Attempt: 1, Envelope: body}).Outcome
	}

	t.Run("whoever knows one of the keys can verify, compressed or not, one event or several", func(t *testing.T) {
		s := sinkFor(t, Target{URL: srv.URL, Gzip: true, Batch: 10, SigningKeys: texts(one, two)})
		for key, want := range map[string]Outcome{one: Taken, two: Taken, other: Refused} {
			p.learn(key)
			same(t, "a small one", deliver(s, 10), want)
			same(t, "a compressed one", deliver(s, 10_000), want)
			batch := []Delivery{{ID: "msg_1", Envelope: []byte(`{"a":1}`)}, {ID: "msg_2", Envelope: []byte(`{"a":2}`)}}
			same(t, "a batch", s.DeliverBatch(t.Context(), batch).Outcome, want)
		}
	})

	t.Run("there is a signature for each key, in their order", func(t *testing.T) {
		for _, keys := range [][]string{{one, two}, {two, one}, {two}} {
			deliver(sinkFor(t, Target{URL: srv.URL, SigningKeys: texts(keys...)}), 1)
			signatures := strings.Fields(p.headers[len(p.headers)-1].Get("webhook-signature"))
			same(t, "signatures", len(signatures), len(keys))
			for i, key := range keys {
				alone := sinkFor(t, Target{URL: srv.URL, SigningKeys: texts(key)})
				h := p.headers[len(p.headers)-1].Clone()
				alone.signer.sign(h, []byte(`{"type":"message","data":{"text":"ä"}}`))
				same(t, "signature", signatures[i], h.Get("webhook-signature"))
			}
		}
	})

	t.Run("without a key nothing is signed", func(t *testing.T) {
		deliver(sinkFor(t, Target{URL: srv.URL}), 1)
		if got, ok := p.headers[len(p.headers)-1]["Webhook-Signature"]; ok {
			t.Errorf("got %q, want no such header", got)
		}
	})

	t.Run("a refusal says what to do, and never shows a key that the program echoes", func(t *testing.T) {
		bare := strings.TrimPrefix(other, keyPrefix)
		for _, echoed := range []string{one, strings.TrimPrefix(one, keyPrefix)} {
			p.learn(echoed)
			s := sinkFor(t, Target{URL: srv.URL, SigningKeys: texts(one)})
			s.signer = newSigner(texts(other)) // so that it is refused
			r := attempt(t, s)
			same(t, "next step", r.NextStep, stepSignature)
			if !strings.Contains(r.Reason, "no matching signature") || strings.Contains(r.Reason, strings.TrimPrefix(one, keyPrefix)) || strings.Contains(r.Reason, bare) {
				t.Errorf("got %q, want the reason without the key", r.Reason)
			}
		}
	})
}

func TestSigningKeys(t *testing.T) {
	of := func(n int) string {
		return keyPrefix + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb}, n))
	}
	t.Run("a key has 24 to 64 bytes", func(t *testing.T) {
		for n, want := range map[int]bool{0: false, 23: false, 24: true, 25: true, 32: true, 64: true, 65: false} {
			if err := CheckSigningKey(of(n)); (err == nil) != want {
				t.Errorf("%d bytes: got %v, want it taken: %v", n, err, want)
			}
		}
	})
	t.Run("a fault repeats nothing of the key", func(t *testing.T) {
		good := of(32)
		for _, text := range []string{
			"", strings.TrimPrefix(good, keyPrefix), "whpk_" + good[6:], good + "\n", " " + good, good[:20] + "\n" + good[20:],
			strings.TrimRight(good, "="), strings.ReplaceAll(good, "+", "-"), of(20),
		} {
			_, err := New(newOutbox(), []Target{{Name: "app", Kind: "http", URL: "http://localhost/", SigningKeys: texts(good, text)}}, Options{})
			got := fmt.Sprint(err)
			if !strings.HasPrefix(got, `target "app": signing_keys: key 2 is no signing key: `) || strings.Contains(got, "+/v7") || strings.Contains(got, "-/v7") {
				t.Errorf("%q: got %q, want a fault without the key", text, got)
			}
		}
	})
	t.Run("another target has none", func(t *testing.T) {
		_, err := New(newOutbox(), []Target{{Name: "app", Kind: "log", SigningKeys: texts(of(32))}}, Options{})
		same(t, "error", fmt.Sprint(err), `target "app": signing_keys: a log target has none`)
	})
	t.Run("two that we make are different, and keys", func(t *testing.T) {
		a, b := NewSigningKey(), NewSigningKey()
		if CheckSigningKey(a) != nil || CheckSigningKey(b) != nil || a == b || len(a) != len(of(32)) {
			t.Errorf("got two keys of %d and %d bytes, want two of 32 random ones", len(a), len(b))
		}
	})
}

func TestKeyRotation(t *testing.T) {
	t.Run("a key is replaced while events flow, and none is refused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			network := newNetwork()
			old, fresh := NewSigningKey(), NewSigningKey()
			p := &knower{key: old}
			srv := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
			served := make(chan struct{})
			go func() { defer close(served); _ = srv.Serve(network) }()
			defer func() { _ = srv.Close(); <-served }()
			app := func(keys ...string) Target {
				return Target{Name: "app", Kind: "http", URL: "http://program/", SigningKeys: texts(keys...)}
			}
			box := newOutbox()
			b := start(t, box, Options{Dial: network.Dial}, app(old))
			defer b.end() // before the program
			term := b.hold("acme")
			say := func() {
				for range 20 {
					b.Accepted(term, box.say("acme", "C1", "app"))
				}
			}
			change := func(keys ...string) {
				say() // some are under way with the setup of before
				_, changed, _ := b.set(app(keys...))
				same(t, "changed", len(changed), 1)
				say()
				time.Sleep(time.Second)
			}
			change(old, fresh)
			p.learn(fresh)
			say()
			time.Sleep(time.Second)
			change(fresh)
			same(t, "the program saw", p.calls(), "100 calls, 0 refused")
			same(t, "delivered", box.count("app", Delivered), 100)
			p.learn(old)
			say()
			time.Sleep(time.Second)
			if strings.HasSuffix(p.calls(), " 0 refused") {
				t.Error("got the removed key still signing, want it gone")
			}
		})
	})

	t.Run("nothing is signed by a clock that is not believed, and no attempt is used up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			network := newNetwork()
			key := NewSigningKey()
			p := &knower{key: key}
			srv := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
			served := make(chan struct{})
			go func() { defer close(served); _ = srv.Serve(network) }()
			defer func() { _ = srv.Close(); <-served }()
			box, clock := newOutbox(), &fakeClock{held: "it shows 1970"}
			b := start(t, box, Options{Dial: network.Dial, Clock: clock}, Target{Name: "app", Kind: "http", URL: "http://program/", SigningKeys: texts(key)})
			defer b.end()
			b.Accepted(b.hold("acme"), box.say("acme", "C1", "app"))
			time.Sleep(10 * time.Minute)
			same(t, "the program saw", p.calls(), "0 calls, 0 refused")
			noAttempts(t, box, "while the clock is held")
			if got := b.Stats().Targets[0]; got.State != Open || !strings.Contains(got.Reason, "it shows 1970") {
				t.Errorf("got %+v, want it down because of the clock", got)
			}
			clock.hold("")
			time.Sleep(2 * time.Minute)
			same(t, "the program saw", p.calls(), "1 calls, 0 refused")
		})
	})
}
