package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"leasehold/admin"
	"leasehold/config"
	"leasehold/internal/redact"
)

const (
	pingTask = "health-ping"
	// pingEvery is the minute that services for this count in.
	pingEvery = time.Minute
	// pingWithin bounds one ping: it says little to somebody who is far away.
	pingWithin = 10 * time.Second
	// pingWords is how much of what is wrong a ping says, in bytes.
	pingWords = 4 << 10
)

// pinger tells somebody outside, every minute, that all is well, or what is not:
// whoever hears nothing knows that the box is gone, which it cannot say itself.
type pinger struct {
	current  func() *config.Config
	resolve  config.Resolver
	overview func(context.Context) (admin.Overview, error)
	redact   *redact.Redactor
	client   *http.Client

	unwell bool // at the last look
}

func newPinger(current func() *config.Config, resolve config.Resolver, overview func(context.Context) (admin.Overview, error), r *redact.Redactor) *pinger {
	return &pinger{current: current, resolve: resolve, overview: overview, redact: r, client: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// run looks and pings once. What is unwell at one look only is not told: a link that
// comes back within the minute is no reason to wake anybody.
func (p *pinger) run(ctx context.Context) (string, error) {
	v := p.current().Health.PingURL
	if v.IsZero() {
		return "", nil
	}
	address, err := v.Resolve(p.resolve)
	if err != nil {
		return "", fmt.Errorf("health.ping_url: %w", err)
	}
	address = strings.TrimSpace(address)
	p.redact.Add(address)
	words, err := p.trouble(ctx)
	if err != nil && ctx.Err() != nil {
		return "", err
	}
	if err != nil {
		words = "the box cannot say how it is: " + err.Error()
	}
	first := words != "" && !p.unwell
	p.unwell = words != ""
	if first {
		return "", nil
	}
	return "", p.ping(ctx, address, p.redact.String(words))
}

// trouble is what leasehold status --check goes by, in words; "" = all is well. That
// the last ping failed is no reason for the next one to say so.
func (p *pinger) trouble(ctx context.Context) (string, error) {
	o, err := p.overview(ctx)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, t := range o.Trouble {
		if t.What != "task "+pingTask {
			lines = append(lines, troubleLine(t))
		}
	}
	words := strings.Join(lines, "\n")
	if len(words) > pingWords {
		words = strings.ToValidUTF8(words[:pingWords], "") + "…"
	}
	return words, nil
}

// ping calls the address, or, with something to say, what is called fail under it.
// Its errors do not repeat the address, which is a secret by itself.
func (p *pinger) ping(ctx context.Context, address, words string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return errors.New("health.ping_url is no address; write one such as https://hc.example.org/ping/ID")
	}
	method, body := http.MethodGet, io.Reader(nil)
	if words != "" {
		u, method, body = u.JoinPath("fail"), http.MethodPost, strings.NewReader(words)
	}
	ctx, cancel := context.WithTimeout(ctx, pingWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return errors.New("health.ping_url cannot be called; write an address such as https://hc.example.org/ping/ID")
	}
	req.Header.Set("User-Agent", "leasehold/"+buildVersion().Version)
	if words != "" {
		req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	resp, err := p.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return fmt.Errorf("ping %s: %w", u.Host, err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("ping %s: answered %d; correct health.ping_url, then leasehold reload", u.Host, resp.StatusCode)
	}
	return nil
}
