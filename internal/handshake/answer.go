package handshake

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// Sulk is how long a server is left alone that says "too much" without saying
	// how long.
	Sulk = 30 * time.Second
	// MaxWait is the longest wait that a server can impose: a mistaken year must not
	// silence a bot for ever.
	MaxWait = 24 * time.Hour
	// maxAnswer is how many bytes of a refusal are read: more than is ever shown.
	maxAnswer = 1024
)

// Answer is the server's refusal in its own words: the status, and the beginning of
// the body where it is text and no page. It may hold secrets.
func Answer(resp *http.Response) string {
	said := resp.Status
	if kind := resp.Header.Get("Content-Type"); resp.Body != nil && !strings.Contains(kind, "html") {
		if body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err == nil && len(body) > 0 {
			said += ": " + string(body)
		}
	}
	return said
}

// RetryAfter reads the header: seconds, or a date, which is compared with the
// server's own clock where it shows it. otherwise is what it returns without one.
func RetryAfter(resp *http.Response, otherwise time.Duration) time.Duration {
	text := strings.TrimSpace(resp.Header.Get("Retry-After"))
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, MaxWait)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return otherwise
	}
	now := time.Now()
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), time.Second), MaxWait)
}

// Unanswered is why there was no answer, without the URL that a client's error
// quotes, and a secret with it.
func Unanswered(err error) error {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	return err
}
