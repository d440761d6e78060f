package sse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"leasehold/channel"
	"leasehold/internal/handshake"
	"leasehold/internal/jsonframe"
)

const eventStream = "text/event-stream"

// conn is a stream that is open.
type conn struct {
	body   io.ReadCloser
	client *http.Client
	cancel context.CancelCauseFunc // of the request
}

// hang ends the stream at once, whatever else is going on.
func (c *conn) hang() { c.cancel(context.Canceled) }

// close gives its socket back, too.
func (c *conn) close() {
	c.hang()
	if c.body != nil {
		_ = c.body.Close()
	}
	c.client.CloseIdleConnections()
}

var errNoAnswer = errors.New("no answer")

// open asks for the stream. Its errors are classified and hold no secret.
func (p *plan) open(ctx context.Context, link *channel.Link) (*conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &conn{client: link.HTTPClient(), cancel: cancel}
	late := time.AfterFunc(p.answerWithin, func() { cancel(errNoAnswer) })
	err := p.ask(ctx, c, p.resumeFrom(link.Cursor()))
	if intime := late.Stop(); err == nil && intime {
		return c, nil
	}
	c.close()
	if errors.Is(context.Cause(ctx), errNoAnswer) {
		err = channel.Failed("no_answer", fmt.Errorf("the server did not answer within %s; if it answers with its first event only, raise answer_within", p.answerWithin))
	}
	return nil, err
}

// ask sends the request and looks at the answer, to the end of a refusal.
func (p *plan) ask(ctx context.Context, c *conn, at json.RawMessage) error {
	req, err := p.request(ctx, at)
	if err != nil {
		return err
	}
	resp, err := c.client.Do(req) //nolint:bodyclose // conn.close does
	if err != nil {
		return channel.Failed("dial", p.words.Error("connect to "+p.place+": ", handshake.Unanswered(err)))
	}
	c.body = resp.Body
	return p.refused(resp)
}

// request makes the request that goes on behind a position; nil = from the start.
func (p *plan) request(ctx context.Context, at json.RawMessage) (*http.Request, error) {
	v := jsonframe.Values{Secrets: p.secrets, Cursor: at}
	address, _ := p.url.Render(v)
	var body io.Reader
	if p.body != nil {
		if at == nil {
			v.Cursor = jsonframe.Quote("")
		}
		b, _ := p.body.Render(v)
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, p.method, string(address), body)
	if err != nil {
		return nil, channel.Rejected("config", p.words.Error("make the request: ", handshake.Unanswered(err)))
	}
	req.Header, req.Host = p.header.Clone(), p.host
	if at != nil {
		req.Header.Set("Last-Event-ID", jsonframe.Text(at))
	}
	return req, nil
}

// refused classifies an answer that is not the stream; nil: it is.
func (p *plan) refused(resp *http.Response) error {
	code, name := resp.StatusCode, fmt.Sprintf("http_%d", resp.StatusCode)
	switch code {
	case http.StatusOK:
		return p.noStream(resp.Header)
	case http.StatusNoContent:
		return channel.Rejected("gone", errors.New("the server says that there is nothing to hear here, and not to ask again (204 No Content); check url"))
	}
	said := p.words.Show(handshake.Answer(resp))
	switch {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return channel.Rejected("auth", fmt.Errorf("the server refused the credentials: %s; check headers and secrets", said))
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		return channel.RateLimited(fmt.Errorf("the server wants us to wait: %s", said), handshake.RetryAfter(resp, handshake.Sulk))
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code >= 500:
		return channel.Failed(name, fmt.Errorf("the server did not send the stream: %s", said))
	case code >= 300 && code < 400:
		return channel.Rejected(name, fmt.Errorf("the server redirects to another host, which does not get our headers: %s; write the new address into url", said))
	default:
		return channel.Rejected(name, fmt.Errorf("the server has no stream at this address: %s; check url, method and headers", said))
	}
}

// noStream says why a 200 is no stream, by its headers.
func (p *plan) noStream(h http.Header) error {
	if kind, _, err := mime.ParseMediaType(h.Get("Content-Type")); err != nil || kind != eventStream {
		return channel.Rejected("content_type", fmt.Errorf("the server answered with %q in place of %s; check url, method and headers",
			p.words.Show(h.Get("Content-Type")), eventStream))
	}
	if encoding := h.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return channel.Rejected("content_encoding", fmt.Errorf("the server compressed the stream (%s) although it was asked not to; turn that off there", p.words.Show(encoding)))
	}
	return nil
}
