package delivery

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"leasehold/internal/redact"
)

const (
	// bodyLimit is how much of an answer is read: enough for the reason that it
	// gives, and for keeping the connection. One that says more loses its connection.
	bodyLimit = 64 << 10
	// reasonLimit is how much of an answer's body a reason quotes, in bytes.
	reasonLimit = 200
	// dialTimeout bounds finding a connection, so that a host that swallows packets
	// is told apart from a program that is slow.
	dialTimeout = 10 * time.Second
	// idleTimeout is when an unused connection is closed. Most servers close theirs
	// later; the few that do not cost a fresh connection, not an attempt.
	idleTimeout = 30 * time.Second
	// retryAfterMax bounds what a target may ask for: one that wants to be left
	// alone for longer is looked at all the same.
	retryAfterMax = time.Hour
	// headersOfCall is how many a call has beside those of its target, at most.
	headersOfCall = 6
)

// Dialer opens a connection, like net.Dialer.DialContext.
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// httpSink posts envelopes to one address.
type httpSink struct {
	request   *http.Request // what is the same for every call
	transport *http.Transport
	gzip      bool
	signer    signer
	clock     Clock            // nil = the wall clock is right
	secrets   *redact.Redactor // what must not show in a reason
}

// newHTTPSink makes the sink of a checked target. It makes no connection.
func newHTTPSink(t Target, dial Dialer, clock Clock, agent string) (*httpSink, error) {
	at, err := parseURL(t.URL)
	if err != nil {
		return nil, fmt.Errorf("target %q: url: %w", t.Name, err)
	}
	if addr, err := netip.ParseAddr(at.seen.Hostname()); err == nil && at.socket == "" && isDenied(t.Deny, plain(addr)) {
		return nil, fmt.Errorf("target %q: url: %w", t.Name, &deniedError{plain(addr)})
	}
	s := &httpSink{gzip: t.Gzip, signer: newSigner(t.SigningKeys), clock: clock, secrets: redact.New()}
	if s.request, err = http.NewRequest(http.MethodPost, at.seen.String(), http.NoBody); err != nil { //nolint:noctx // each call has its own
		return nil, fmt.Errorf("target %q: url: %w", t.Name, err)
	}
	header := s.request.Header
	header.Set("User-Agent", agent)
	if user := at.seen.User; user != nil {
		password, _ := user.Password() // "" = none
		s.request.SetBasicAuth(user.Username(), password)
	}
	for name, value := range t.Headers {
		header.Set(name, value.Reveal())
		s.secrets.Add(value.Reveal())
	}
	for _, key := range t.SigningKeys {
		s.secrets.Add(key.Reveal())
		s.secrets.Add(strings.TrimPrefix(key.Reveal(), keyPrefix))
	}
	header.Set("Content-Type", "application/json")
	// An empty value is not sent. It tells the transport that a call may be made
	// again when a kept connection turns out to be closed: the target knows the
	// delivery by its webhook-id.
	header["Idempotency-Key"] = []string{}
	s.hide(at.seen)
	s.transport, err = newTransport(t, at.socket, dial)
	return s, err
}

// hide keeps what an address may carry beside its host out of every reason.
func (s *httpSink) hide(u *url.URL) {
	if password, ok := u.User.Password(); ok {
		s.secrets.Add(password)
	}
	s.secrets.Add(u.RawQuery)
	for _, values := range u.Query() {
		for _, v := range values {
			s.secrets.Add(v)
		}
	}
}

// Close ends the connections that are kept for later.
func (s *httpSink) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// Deliver posts the envelope once.
func (s *httpSink) Deliver(ctx context.Context, d Delivery) Result {
	return s.post(ctx, d.Envelope, func(h http.Header) { s.label(h, d, time.Now()) })
}

// DeliverBatch implements Batcher: one request for all.
func (s *httpSink) DeliverBatch(ctx context.Context, all []Delivery) Result {
	now := time.Now()
	return s.post(ctx, batchBody(all, now), func(h http.Header) {
		s.label(h, Delivery{ID: batchID(all), Attempt: 1}, now)
		h.Set("Leasehold-Batch", strconv.Itoa(len(all)))
	})
}

// batchID names a batch by what is in it: the same events come under the same id.
func batchID(all []Delivery) string {
	sum := sha256.New()
	for i := range all {
		_, _ = io.WriteString(sum, all[i].ID+"\n") // a hash takes all
	}
	return "batch_" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// batchBody is an envelope of envelopes, each with its id in front.
func batchBody(all []Delivery, now time.Time) []byte {
	size := 0
	for i := range all {
		size += len(all[i].Envelope) + len(all[i].ID) + 32
	}
	b := append(make([]byte, 0, size+64), `{"type":"batch","timestamp":"`+stamp(now)+`","data":[`...)
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"webhook_id":"`+all[i].ID+`",`...)
		b = append(b, all[i].Envelope[len("{"):]...)
	}
	return append(b, "]}"...)
}

// post makes one request.
func (s *httpSink) post(ctx context.Context, body []byte, label func(http.Header)) Result {
	if held := s.held(); held != "" {
		return Result{Outcome: Down, Reason: "a signature needs a clock that is believed: " + held, NextStep: stepClock}
	}
	connected := false // to whom the call was sent last
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { connected = false },
		GotConn: func(httptrace.GotConnInfo) { connected = true },
	})
	sent, encoding := body, ""
	if s.gzip && len(body) >= gzipMin {
		sent, encoding = zip(body), "gzip"
	}
	req := s.request.WithContext(ctx)
	req.Header = make(http.Header, len(s.request.Header)+headersOfCall)
	maps.Copy(req.Header, s.request.Header)
	label(req.Header)
	s.signer.sign(req.Header, body)
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(sent)), nil }
	req.Body, _ = req.GetBody() // it never fails
	req.ContentLength = int64(len(sent))
	// No http.Client: what that does beside, to follow redirects and to keep cookies,
	// is not wanted, and costs a tenth of a call.
	resp, err := s.transport.RoundTrip(req) //nolint:bodyclose // answer closes it
	if err != nil {
		return s.failure(ctx, err, connected)
	}
	return s.answer(resp)
}

// held is why nothing may be signed now; "" = it may. A receiver refuses a timestamp
// that is minutes away from its own, and each refusal would be an attempt.
func (s *httpSink) held() string {
	if len(s.signer) == 0 || s.clock == nil {
		return ""
	}
	return s.clock.Held()
}

// label sets the headers of one attempt.
func (s *httpSink) label(h http.Header, d Delivery, now time.Time) {
	h.Set("Webhook-Id", d.ID)
	h.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	h.Set("Leasehold-Attempt", strconv.Itoa(d.Attempt))
	if d.Replay {
		h.Set("Leasehold-Replay", "true")
	}
}

// reserved reports whether a header is set by us or by the transport.
func reserved(name string) bool {
	switch name = http.CanonicalHeaderKey(name); name {
	case "Host", "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection", "Idempotency-Key":
		return true
	}
	return strings.HasPrefix(name, "Webhook-") || strings.HasPrefix(name, "Leasehold-")
}

// failure classifies a call that got no answer.
func (s *httpSink) failure(ctx context.Context, err error, connected bool) Result {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return Result{Outcome: Aborted, Reason: "broken off"}
	case wantsCertificate(err):
		return Result{Outcome: Down, Reason: oneLine(s.secrets, err.Error()), NextStep: stepCertificate}
	case !connected && ctx.Err() != nil:
		return Result{Outcome: Down, Reason: "no connection in time"}
	case !connected:
		return Result{Outcome: Down, Reason: oneLine(s.secrets, err.Error()), NextStep: stepWithout(err)}
	case ctx.Err() != nil:
		return Result{Outcome: Slow, Reason: "no answer in time", NextStep: stepSlow}
	default:
		return Result{Outcome: Broken, Reason: "the connection broke before an answer: " + oneLine(s.secrets, err.Error()), NextStep: stepBroken}
	}
}

// answer classifies what the target said. The status alone decides: a body that
// breaks off changes nothing of it.
func (s *httpSink) answer(resp *http.Response) Result {
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, answerLimit+1))
	status := resp.StatusCode
	if status >= 200 && status < 300 {
		return Result{Outcome: Taken, Answer: ReadAnswer(resp.Header.Get("Content-Type"), body)}
	}
	r := Result{Reason: s.reason(status, body), After: retryAfter(resp.Header.Get("Retry-After"), time.Now()), NextStep: stepAfter(status)}
	switch {
	case status == http.StatusUnsupportedMediaType && s.gzip:
		r.NextStep = stepGzip
	case r.NextStep == stepAccess && len(s.signer) > 0:
		r.NextStep = stepSignature
	}
	switch {
	case status == http.StatusGone:
		r.Outcome = Gone
	case status == http.StatusTooManyRequests, status == http.StatusBadGateway,
		status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		r.Outcome = Down
	case status >= 500:
		r.Outcome = Broken
	case status >= 400:
		r.Outcome = Refused
	default:
		r.Outcome = Broken
		r.Reason = fmt.Sprintf("answered %d: redirects are not followed; set the target's url to the final address", status)
	}
	return r
}

// reason is what an answer said, on one line.
func (s *httpSink) reason(status int, body []byte) string {
	said := oneLine(s.secrets, string(body)) // whole: a secret cut in two is not found
	said = short(said, reasonLimit)
	if said == "" {
		said = strings.ToLower(http.StatusText(status))
	}
	return strings.TrimSuffix(fmt.Sprintf("answered %d: %s", status, said), ": ")
}

// retryAfter reads the header in both of its forms; 0 = it says nothing useful.
func retryAfter(v string, now time.Time) time.Duration {
	v = strings.TrimSpace(v)
	if v == "" {
		return 0
	}
	if n, err := strconv.ParseInt(v, 10, 32); err == nil {
		return min(max(0, time.Duration(n)*time.Second), retryAfterMax)
	}
	if len(v) > 0 && strings.Trim(v, "0123456789") == "" { // a number beyond 32 bits
		return retryAfterMax
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return min(max(0, at.Sub(now)), retryAfterMax)
}
