package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"leasehold/internal/loop"
)

// tailAgain is the wait before a tail that was cut comes back.
const tailAgain = time.Second

// Tail calls see for every event, from now on or after q's after, until ctx ends
// or see returns an error. A stream that is cut, by a restart for one, is taken
// up again after the last event seen; lost is told of each cut. Only a first
// attempt that fails ends it with that error.
func (c *Client) Tail(ctx context.Context, q url.Values, see func(Event) error, lost func(error)) error {
	q = maps.Clone(q)
	last, err := c.tailOnce(ctx, q, "", see)
	for ctx.Err() == nil {
		if theirs, ok := errors.AsType[*seeError](err); ok {
			return theirs.err
		}
		if last == "" {
			return err
		}
		lost(err)
		if loop.Sleep(ctx, tailAgain) != nil {
			break
		}
		var next string
		if next, err = c.tailOnce(ctx, q, last, see); next != "" {
			last = next
		}
	}
	return nil //nolint:nilerr // the caller ended it; what ended the last stream is no news
}

// seeError is the caller's own error, apart from those of the stream.
type seeError struct{ err error }

func (e *seeError) Error() string { return e.err.Error() }
func (e *seeError) Unwrap() error { return e.err }

// tailOnce reads one stream to its end, and returns the id to resume after; ""
// when it never began.
func (c *Client) tailOnce(ctx context.Context, q url.Values, after string, see func(Event) error) (last string, err error) {
	header := http.Header{}
	if after != "" {
		header.Set("Last-Event-ID", after)
	}
	path := "/v1/events/tail"
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	began := func() bool { return true }
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if c.within > 0 { // until it begins; then silence only says that nothing is heard
		late := time.AfterFunc(c.within, func() { end(errMute) })
		defer late.Stop()
		began = late.Stop
	}
	answer, err := c.send(ctx, http.MethodGet, path, nil, header)
	if err != nil {
		return "", err
	}
	began()
	defer closeBody(answer)
	last = after
	in := bufio.NewReader(answer.Body)
	var id string
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the stream ended")
			}
			return last, fmt.Errorf("tail events: %w", err)
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			id = value
		case "data":
			var e Event
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				return last, fmt.Errorf("read event %s: %w", id, err)
			}
			if err := see(e); err != nil {
				return last, &seeError{err}
			}
			last = id
		}
	}
}
