package admin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"leasehold/internal/fault"
)

// metricsType is the text format that every scraper reads.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// metrics answers a scrape: it reads, and writes nothing.
func (a *API) metrics(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	if a.o.Metrics == nil {
		return fault.Wrap(fault.Temporary, errNotRunning)
	}
	var page bytes.Buffer // whole before the answer begins, so that an error can be told
	if err := a.o.Metrics(r.Context(), &page); err != nil {
		return fmt.Errorf("write the metrics: %w", err)
	}
	w.Header().Set("Content-Type", metricsType)
	_, _ = page.WriteTo(w) // whoever does not read it has gone
	return nil
}

// Metrics is the page of metrics, in the text format of Prometheus.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) {
	ctx, done := context.WithTimeoutCause(ctx, answerWithin, errMute)
	defer done()
	answer, err := c.send(ctx, http.MethodGet, "/metrics", nil, nil)
	if err != nil {
		return nil, err
	}
	defer closeBody(answer)
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	return page, nil
}
