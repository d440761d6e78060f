package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"leasehold/internal/fault"
)

// ErrNoAnswer is in the error of a call that reached nobody.
var ErrNoAnswer = errors.New("nobody answers")

// answerWithin bounds a call of another process. The slowest question takes a
// fraction of it; a process that is stopped or stuck never answers, and its kernel
// goes on taking connections for it.
const answerWithin = 10 * time.Second

// errMute ends a call that was connected and got no answer in time.
var errMute = fmt.Errorf("the process does not answer within %v, though its socket is open; look whether it is stopped or stuck, then end it and start it again", answerWithin)

// Client asks the handlers over any way in. Its errors have the kind that the
// handler's had. A call of another process is bounded by ten seconds, apart from
// what has no end of its own, a tail, the run of a task and a backup; a call of this one by
// its context alone.
type Client struct {
	http   *http.Client
	within time.Duration // 0: as long as the context lasts
}

// NewClient makes a client of a way in: Socket or InProcess.
func NewClient(way http.RoundTripper) *Client {
	c := &Client{http: &http.Client{Transport: way}, within: answerWithin}
	if _, own := way.(inProcess); own {
		c.within = 0
	}
	return c
}

// Close lets go of the connections that wait to be used again.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// host stands in the URL of a request; a way in ignores it.
const host = "http://leasehold"

// send makes a request and returns its answer when that is a success.
func (c *Client) send(ctx context.Context, method, path string, body any, header http.Header) (*http.Response, error) {
	var in io.Reader
	if body != nil {
		b, err := plainJSON(body)
		if err != nil {
			return nil, fault.Errorf(fault.Invalid, "write request: %w", err)
		}
		in = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, host+path, in)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(r.Header, header)
	answer, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, context.Cause(ctx))
		}
		return nil, fmt.Errorf("%s %s: %w: %w", method, path, ErrNoAnswer, err)
	}
	if answer.StatusCode < 300 {
		return answer, nil
	}
	defer closeBody(answer)
	return nil, problemIn(answer)
}

// closeBody ends an answer, which for a stream ends its handler. What it says was
// read, or is not wanted.
func closeBody(answer *http.Response) { _ = answer.Body.Close() }

// wordsMax bounds what is repeated of an answer that is no problem document.
const wordsMax = 200

func problemIn(answer *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxBody))
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	var p Problem
	if err != nil || kind != "application/problem+json" || json.Unmarshal(b, &p) != nil {
		words := strings.TrimSpace(string(b[:min(len(b), wordsMax)]))
		if words == "" || kind != "" && kind != "text/plain" {
			return fmt.Errorf("the server answered %s", answer.Status)
		}
		return fmt.Errorf("the server answered %s: %q", answer.Status, words) // such as a port that speaks TLS says
	}
	return p.Err()
}

// call makes a request and decodes its answer into out, unless that is nil. What
// a newer server says beyond out is ignored.
func (c *Client) call(ctx context.Context, method, path string, body any, header http.Header, out any) error {
	if c.within > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeoutCause(ctx, c.within, errMute)
		defer done()
	}
	return c.exchange(ctx, method, path, body, header, out)
}

// exchange is a call that takes as long as its context.
func (c *Client) exchange(ctx context.Context, method, path string, body any, header http.Header, out any) error {
	answer, err := c.send(ctx, method, path, body, header)
	if err != nil {
		return err
	}
	defer closeBody(answer)
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("read answer of %s %s: %w", method, path, err)
	}
	return nil
}

func get[T any](ctx context.Context, c *Client, path string, q url.Values) (T, error) {
	var out T
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return out, c.call(ctx, http.MethodGet, path, nil, nil, &out)
}

func post[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	var out T
	return out, c.call(ctx, http.MethodPost, path, body, nil, &out)
}

// Status is the truth about the box.
func (c *Client) Status(ctx context.Context) (Overview, error) {
	return get[Overview](ctx, c, "/v1/status", nil)
}

// Ready returns why the node cannot work; nil: it can.
func (c *Client) Ready(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, "/readyz", nil, nil, nil)
}

// Version says what the answering program is.
func (c *Client) Version(ctx context.Context) (Version, error) {
	return get[Version](ctx, c, "/v1/version", nil)
}

// Installations lists a page: q may have state, type, label, after and limit.
func (c *Client) Installations(ctx context.Context, q url.Values) (Page[View], error) {
	return get[Page[View]](ctx, c, "/v1/installations", q)
}

// Installation shows one.
func (c *Client) Installation(ctx context.Context, id string) (View, error) {
	return get[View](ctx, c, "/v1/installations/"+url.PathEscape(id), nil)
}

// PutInstallation creates an installation (revision 0), or replaces the one of
// that revision.
func (c *Client) PutInstallation(ctx context.Context, id string, in Input, revision int64) (View, error) {
	header := http.Header{}
	if revision > 0 {
		header.Set("If-Match", strconv.Quote(strconv.FormatInt(revision, 10)))
	}
	var v View
	return v, c.call(ctx, http.MethodPut, "/v1/installations/"+url.PathEscape(id), in, header, &v)
}

// SetEnabled enables or disables an installation.
func (c *Client) SetEnabled(ctx context.Context, id string, enabled bool) (View, error) {
	verb := "disable"
	if enabled {
		verb = "enable"
	}
	return post[View](ctx, c, "/v1/installations/"+url.PathEscape(id)+"/"+verb, nil)
}

// RemoveInstallation takes an installation away; its backlog is still delivered.
func (c *Client) RemoveInstallation(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/v1/installations/"+url.PathEscape(id), nil, nil, nil)
}

// Types lists the channel types.
func (c *Client) Types(ctx context.Context) (Page[Type], error) {
	return get[Page[Type]](ctx, c, "/v1/types", nil)
}

// Type shows one with its schema.
func (c *Client) Type(ctx context.Context, name string) (Type, error) {
	return get[Type](ctx, c, "/v1/types/"+url.PathEscape(name), nil)
}

// Events lists a page: q may have installation, type, after, before and limit.
func (c *Client) Events(ctx context.Context, q url.Values) (Page[Event], error) {
	return get[Page[Event]](ctx, c, "/v1/events", q)
}

// Event shows one with its body and its deliveries.
func (c *Client) Event(ctx context.Context, id string) (Event, error) {
	return get[Event](ctx, c, "/v1/events/"+url.PathEscape(id), nil)
}

// Trace tells an event's whole way, by its id or by that of one of its deliveries.
func (c *Client) Trace(ctx context.Context, id string) (Trace, error) {
	return get[Trace](ctx, c, "/v1/trace/"+url.PathEscape(id), nil)
}

// ReplayEvents delivers again what p selects, in as many requests as it takes. With
// an error it returns what was done until then.
func (c *Client) ReplayEvents(ctx context.Context, p Replay) (done Replayed, err error) {
	for {
		part, err := post[Replayed](ctx, c, "/v1/events/replay", p)
		if err != nil {
			return done, err
		}
		done.Count, done.Waiting, done.Until = done.Count+part.Count, done.Waiting+part.Waiting, part.Until
		if part.Next == 0 {
			return done, nil
		}
		p.After, p.Until = part.Next, part.Until
	}
}

// Deliveries lists a page: q may have installation, target, state, before and limit.
func (c *Client) Deliveries(ctx context.Context, q url.Values) (Page[Delivery], error) {
	return get[Page[Delivery]](ctx, c, "/v1/deliveries", q)
}

// Delivery shows one.
func (c *Client) Delivery(ctx context.Context, id string) (Delivery, error) {
	return get[Delivery](ctx, c, "/v1/deliveries/"+url.PathEscape(id), nil)
}

// Replay makes dead or dropped deliveries wait again.
func (c *Client) Replay(ctx context.Context, p Pick) (Outcome, error) {
	return c.pick(ctx, p, "replay")
}

// Drop gives up deliveries that wait or are dead.
func (c *Client) Drop(ctx context.Context, p Pick) (Outcome, error) {
	return c.pick(ctx, p, "drop")
}

// pick names one id in the path, whose answer says why nothing was done.
func (c *Client) pick(ctx context.Context, p Pick, verb string) (Outcome, error) {
	if len(p.IDs) == 1 {
		return post[Outcome](ctx, c, "/v1/deliveries/"+url.PathEscape(p.IDs[0])+"/"+verb, nil)
	}
	return post[Outcome](ctx, c, "/v1/deliveries/"+verb, p)
}

// Post asks an installation to send something and, with wait, looks for so long what
// becomes of it. Without the running program it is stored and waits.
func (c *Client) Post(ctx context.Context, installation string, p Post, wait time.Duration) (MessageView, error) {
	return c.post(ctx, "/v1/installations/"+url.PathEscape(installation)+"/messages", p, wait)
}

// Reply answers an event, or that of a delivery; else it is as Post.
func (c *Client) Reply(ctx context.Context, event string, r Reply, wait time.Duration) (MessageView, error) {
	return c.post(ctx, "/v1/events/"+url.PathEscape(event)+"/reply", r, wait)
}

func (c *Client) post(ctx context.Context, path string, body any, wait time.Duration) (MessageView, error) {
	if wait > 0 {
		path += "?" + url.Values{"wait": {wait.String()}}.Encode()
	}
	if c.within > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeoutCause(ctx, wait+c.within, errMute)
		defer done()
	}
	var m MessageView
	return m, c.exchange(ctx, http.MethodPost, path, body, nil, &m)
}

// Messages lists a page: q may have installation, event, state, before and limit.
func (c *Client) Messages(ctx context.Context, q url.Values) (Page[Message], error) {
	return get[Page[Message]](ctx, c, "/v1/messages", q)
}

// Message shows one with its content.
func (c *Client) Message(ctx context.Context, id string) (MessageView, error) {
	return get[MessageView](ctx, c, "/v1/messages/"+url.PathEscape(id), nil)
}

// Tasks lists the maintenance loops.
func (c *Client) Tasks(ctx context.Context) (Page[Task], error) {
	return get[Page[Task]](ctx, c, "/v1/tasks", nil)
}

// RunTask runs a task now and returns when it has ended, however long that takes:
// who does not answer at all is found out with a question that has a bound.
func (c *Client) RunTask(ctx context.Context, name string) (Task, error) {
	if _, err := c.Version(ctx); err != nil {
		return Task{}, err
	}
	var t Task
	return t, c.exchange(ctx, http.MethodPost, "/v1/tasks/"+url.PathEscape(name)+"/run", nil, nil, &t)
}

// MakeBackup has the answering process write a backup to path, or to a dated name
// where path is "", with the master key in it if there is a passphrase, and returns when it has ended, however long that takes.
func (c *Client) MakeBackup(ctx context.Context, path, passphrase string) (Backup, error) {
	if _, err := c.Version(ctx); err != nil {
		return Backup{}, err
	}
	var b Backup
	return b, c.exchange(ctx, http.MethodPost, "/v1/backups", backupOrder{Path: path, Passphrase: passphrase}, nil, &b)
}

// Reload has the running program apply its files as they are now, however long
// that takes; see RunTask. allowEmpty: one that has become empty, too.
func (c *Client) Reload(ctx context.Context, allowEmpty bool) (Reloaded, error) {
	if _, err := c.Version(ctx); err != nil {
		return Reloaded{}, err
	}
	path := "/v1/reload"
	if allowEmpty {
		path += "?allow_empty=true"
	}
	var done Reloaded
	return done, c.exchange(ctx, http.MethodPost, path, nil, nil, &done)
}

// DrainNode has the node of this name or instance hold nothing until ResumeNode; force:
// although nobody takes over what it holds (else a fault.Conflict).
func (c *Client) DrainNode(ctx context.Context, name string, force bool) (Node, error) {
	path := "/v1/nodes/" + url.PathEscape(name) + "/drain"
	if force {
		path += "?force=true"
	}
	return post[Node](ctx, c, path, nil)
}

// ResumeNode takes DrainNode back.
func (c *Client) ResumeNode(ctx context.Context, name string) (Node, error) {
	return post[Node](ctx, c, "/v1/nodes/"+url.PathEscape(name)+"/resume", nil)
}

// Nodes lists the live sessions.
func (c *Client) Nodes(ctx context.Context) (Page[Node], error) {
	return get[Page[Node]](ctx, c, "/v1/nodes", nil)
}
