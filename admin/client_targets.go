package admin

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

func targetPath(name, verb string) string {
	path := "/v1/targets/" + url.PathEscape(name)
	if verb != "" {
		path += "/" + verb
	}
	return path
}

// Targets lists a page: q may have type, after and limit.
func (c *Client) Targets(ctx context.Context, q url.Values) (Page[TargetView], error) {
	return get[Page[TargetView]](ctx, c, "/v1/targets", q)
}

// Target shows one.
func (c *Client) Target(ctx context.Context, name string) (TargetView, error) {
	return get[TargetView](ctx, c, targetPath(name, ""), nil)
}

// PutTarget creates a target from the keys of a [[target]] (revision 0), or replaces
// the one of that revision.
func (c *Client) PutTarget(ctx context.Context, name string, keys map[string]any, revision int64) (v TargetView, err error) {
	err = c.call(ctx, http.MethodPut, targetPath(name, ""), keys, matching(revision), &v)
	return v, err
}

// PatchTarget changes keys of the target of a revision; nil takes one away.
func (c *Client) PatchTarget(ctx context.Context, name string, keys map[string]any, revision int64) (v TargetView, err error) {
	err = c.call(ctx, http.MethodPatch, targetPath(name, ""), keys, matching(revision), &v)
	return v, err
}

// matching is the header of a change to a revision; 0 = there is none yet.
func matching(revision int64) http.Header {
	h := http.Header{}
	if revision > 0 {
		h.Set("If-Match", strconv.Quote(strconv.FormatInt(revision, 10)))
	}
	return h
}

// SwitchTarget switches a target on or off.
func (c *Client) SwitchTarget(ctx context.Context, name string, on bool) (TargetView, error) {
	verb := "disable"
	if on {
		verb = "enable"
	}
	return post[TargetView](ctx, c, targetPath(name, verb), nil)
}

// RemoveTarget takes a target away. With force, what waits for it ends as dead letters.
func (c *Client) RemoveTarget(ctx context.Context, name string, force bool) (done RemovedTarget, err error) {
	path := targetPath(name, "")
	if force {
		path += "?force=true"
	}
	err = c.exchange(ctx, http.MethodDelete, path, nil, nil, &done) // a long backlog takes its time
	return done, err
}

// TestTarget makes one attempt with a test event. It takes as long as the target does.
func (c *Client) TestTarget(ctx context.Context, name string) (t TargetTest, err error) {
	err = c.exchange(ctx, http.MethodPost, targetPath(name, "test"), nil, nil, &t)
	return t, err
}

// Pull waits for up to most deliveries of a target that is pulled from; none came in
// time.
func (c *Client) Pull(ctx context.Context, name string, most int, wait time.Duration) ([]Pulled, error) {
	q := url.Values{"max": {strconv.Itoa(most)}, "wait": {wait.String()}}
	var page Page[Pulled]
	err := c.exchange(ctx, http.MethodGet, targetPath(name, "pull")+"?"+q.Encode(), nil, nil, &page)
	return page.Items, err
}

// Acknowledge tells that deliveries that were pulled are done with.
func (c *Client) Acknowledge(ctx context.Context, name string, leases ...string) (Settled, error) {
	return post[Settled](ctx, c, targetPath(name, "ack"), Leases{Leases: leases})
}

// GiveBack tells that deliveries that were pulled could not be handled.
func (c *Client) GiveBack(ctx context.Context, name string, l Leases) (Settled, error) {
	return post[Settled](ctx, c, targetPath(name, "nack"), l)
}
