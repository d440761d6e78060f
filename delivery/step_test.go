package delivery

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
)

func TestNextStep(t *testing.T) {
	t.Run("each answer has its own", func(t *testing.T) {
		for status, want := range map[int]string{
			301: stepMoved, 302: stepMoved, 308: stepMoved, 400: stepRefused, 401: stepAccess, 403: stepAccess, 404: stepPath, 405: stepPath,
			410: stepAgain, 413: stepRefused, 422: stepRefused, 429: stepWait, 500: stepBroken, 501: stepBroken, 502: stepStart, 503: stepStart, 504: stepStart,
		} {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
			if got := attempt(t, sinkFor(t, Target{URL: srv.URL})).NextStep; got != want {
				t.Errorf("%d: got %q, want %q", status, got, want)
			}
			srv.Close()
		}
	})

	t.Run("so has each way to get none", func(t *testing.T) {
		plain := httptest.NewServer(http.NotFoundHandler())
		defer plain.Close()
		secure := httptest.NewUnstartedServer(http.NotFoundHandler())
		secure.Config.ErrorLog = log.New(io.Discard, "", 0)
		secure.StartTLS()
		defer secure.Close()
		old := httptest.NewUnstartedServer(http.NotFoundHandler())
		old.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11} //nolint:gosec // what is refused
		old.Config.ErrorLog = secure.Config.ErrorLog
		old.StartTLS()
		defer old.Close()
		hangsUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
		defer hangsUp.Close()
		slow := make(chan struct{})
		silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-slow }))
		defer silent.Close()
		defer close(slow)
		for name, c := range map[string]struct {
			target Target
			want   string
		}{
			"nobody listens":         {Target{URL: refusing(t)}, stepStart},
			"a port that is none":    {Target{URL: "http://127.0.0.1:99999/"}, stepAddress},
			"a header with a line":   {Target{URL: plain.URL, Headers: map[string]channel.Text{"authorization": channel.NewText("two\nlines")}}, stepHeader},
			"https to a plain one":   {Target{URL: strings.Replace(plain.URL, "http", "https", 1)}, stepPlain},
			"an unknown certificate": {Target{URL: secure.URL}, stepTrust},
			"an old TLS":             {Target{URL: old.URL}, stepTLS},
			"it hangs up":            {Target{URL: hangsUp.URL}, stepBroken},
		} {
			if got := attempt(t, sinkFor(t, c.target)); got.NextStep != c.want {
				t.Errorf("%s: got %q for %q, want %q", name, got.NextStep, got.Reason, c.want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if got := sinkFor(t, Target{URL: silent.URL}).Deliver(ctx, Delivery{}); got.NextStep != stepSlow {
			t.Errorf("it is silent: got %q for %q, want %q", got.NextStep, got.Reason, stepSlow)
		}
		if got := stepWithout(&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}); got != stepResolve {
			t.Errorf("an unknown host: got %q, want %q", got, stepResolve)
		}
		if got := stepWithout(errors.New("something else")); got != stepStart {
			t.Errorf("something else: got %q, want %q", got, stepStart)
		}
	})

	t.Run("each state has its own", func(t *testing.T) {
		failing := health{failingSince: 1, lastStep: stepPath}
		for name, c := range map[string]struct {
			is   target
			want string
		}{
			"well":                {target{circuit: circuit{state: Closed}, health: health{lastStep: stepPath}}, ""},
			"failing":             {target{circuit: circuit{state: Closed}, health: failing}, stepPath},
			"down":                {target{circuit: circuit{state: Open}, health: failing}, stepPath},
			"down, says no more":  {target{circuit: circuit{state: Open}, health: health{failingSince: 1}}, stepStart},
			"disabled, then late": {target{circuit: circuit{state: Disabled}, health: failing}, stepAgain},
		} {
			same(t, name, c.is.nextStep(), c.want)
		}
	})

	t.Run("a target that nobody configured is named in its own", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := newOutbox()
			b := start(t, box, Options{}, Target{Name: "log", Kind: "log"})
			box.say("acme", "C1", "typo")
			b.hold("acme")
			time.Sleep(time.Minute)
			for _, s := range b.Stats().Targets {
				if s.Name == "typo" {
					same(t, "next step", s.NextStep, stepNameless+"typo")
					return
				}
			}
			t.Error("got no target typo, want it shown")
		})
	})
}

// refusing is an address at which nobody listens.
func refusing(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	return srv.URL
}
