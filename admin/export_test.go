package admin

import (
	"context"
	"net/http"

	"leasehold/internal/apitoken"
)

// Patterns are the patterns of every route.
func (a *API) Patterns() (all []string) {
	for pattern := range a.table() {
		all = append(all, pattern)
	}
	return all
}

// Allowed is what a token gets on a route before its handler runs.
func (a *API) Allowed(pattern string, t apitoken.Token, r *http.Request) error {
	return a.allow(pattern, r.WithContext(context.WithValue(r.Context(), callerKey{}, t)))
}
