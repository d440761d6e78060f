package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"leasehold/channel"
	"leasehold/internal/fault"
)

const (
	// maxBody bounds a request's body: a config is a few hundred bytes, ten
	// thousand delivery ids are half a megabyte.
	maxBody = 1 << 20
	// defaultLimit and maxLimit are rows of a page, as the store has them.
	defaultLimit, maxLimit = 50, 500
)

// Page is a part of a list. Next, when it is there, is the cursor of the rest:
// the value of before for what is listed newest first, of after otherwise.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// answer writes v as JSON. Secrets are taken out by value: an event may quote one.
func (a *API) answer(w http.ResponseWriter, status int, v any) error {
	b, err := a.encode(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	a.write(w, b)
	return nil
}

func (a *API) encode(v any) ([]byte, error) {
	b, err := plainJSON(v)
	if err != nil {
		return nil, fmt.Errorf("write answer: %w", err)
	}
	return b, nil
}

// plainJSON is JSON without escapes for HTML: native of a message, and params of a
// call, stay as they were written.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err //nolint:wrapcheck // whoever calls says what it was for
	}
	return b.Bytes(), nil
}

// write sends an answer's last bytes. A client that went away is not our error.
func (a *API) write(w io.Writer, b []byte) { _, _ = io.WriteString(w, a.o.Redact.String(string(b))) }

// read decodes a request's body into v: JSON in UTF-8, no key that v does not have.
func read(w http.ResponseWriter, r *http.Request, v any) error {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	large, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLarge:
		return &statusError{http.StatusRequestEntityTooLarge, fault.Errorf(fault.Invalid, "the request has more than the 1 MiB (%d bytes) that it may have, quotes and names included; send less", large.Limit)}
	case err != nil:
		return fault.Errorf(fault.Invalid, "read the body: %w", err)
	case !utf8.Valid(b):
		return fault.Errorf(fault.Invalid, "the body is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		if errors.Is(err, io.EOF) {
			return fault.Errorf(fault.Invalid, "the body is empty; send JSON")
		}
		return fault.Errorf(fault.Invalid, "the body does not fit: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fault.Errorf(fault.Invalid, "the body has more than one JSON value")
	}
	return nil
}

// query reads the parameters of a request and collects what is wrong with them:
// a filter that was mistyped and ignored would show too much.
type query struct {
	values url.Values
	faults []string
}

func queryOf(r *http.Request, known ...string) *query {
	values, err := url.ParseQuery(r.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.faults = append(q.faults, "the query does not parse")
	}
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			q.faults = append(q.faults, fmt.Sprintf("%q is not a parameter here; there are %s", name, strings.Join(known, ", ")))
		case !utf8.ValidString(strings.Join(all, "")):
			q.faults = append(q.faults, name+" is not valid UTF-8")
		case len(all) > 1 && name != "label":
			q.faults = append(q.faults, name+" is given more than once")
		}
	}
	slices.Sort(q.faults)
	return q
}

func (q *query) text(name string) string { return q.values.Get(name) }

func (q *query) oneOf(name string, allowed ...string) string {
	v := q.values.Get(name)
	if v != "" && !slices.Contains(allowed, v) {
		q.faults = append(q.faults, fmt.Sprintf("%s: must be one of %s", name, strings.Join(allowed, ", ")))
	}
	return v
}

func (q *query) number(name string, least, most int64) int64 {
	v := q.values.Get(name)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < least || n > most {
		q.faults = append(q.faults, fmt.Sprintf("%s: must be a number from %d to %d", name, least, most))
	}
	return n
}

// span reads a duration from 0 to most.
func (q *query) span(name string, most time.Duration) time.Duration {
	v := q.values.Get(name)
	if v == "" {
		return 0
	}
	var d channel.Duration
	if err := d.UnmarshalText([]byte(v)); err != nil || d.Std() < 0 || d.Std() > most {
		q.faults = append(q.faults, fmt.Sprintf("%s: must be a duration from 0s to %s, such as 10s", name, most))
	}
	return d.Std()
}

func (q *query) limit() int {
	if n := q.number("limit", 1, maxLimit); n > 0 {
		return int(n)
	}
	return defaultLimit
}

func (q *query) err() error {
	if len(q.faults) == 0 {
		return nil
	}
	return fault.Errorf(fault.Invalid, "%s", strings.Join(q.faults, "; "))
}
