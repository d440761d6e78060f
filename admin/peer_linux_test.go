package admin

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestPeer(t *testing.T) {
	t.Run("a caller of another user is refused with what to do", func(t *testing.T) {
		err := allowed(os.Geteuid() + 1)
		if err == nil || !strings.Contains(err.Error(), "sudo") {
			t.Errorf("got %v, want a refusal that says how", err)
		}
		if err := errors.Join(allowed(os.Geteuid()), allowed(0)); err != nil {
			t.Errorf("ourselves and root: got %v, want nil", err)
		}
		h := guard(hello)
		w := &recorder{header: http.Header{}}
		r, _ := http.NewRequestWithContext(context.WithValue(t.Context(), peerKey{}, err), http.MethodGet, "/v1/version", nil)
		h.ServeHTTP(w, r)
		if w.status != http.StatusForbidden || strings.Contains(w.body.String(), `"7"`) {
			t.Errorf("answer: got %d %s, want 403 and nothing else", w.status, &w.body)
		}
	})
}

// recorder keeps what a handler answered.
type recorder struct {
	header http.Header
	status int
	body   strings.Builder
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
