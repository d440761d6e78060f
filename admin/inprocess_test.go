package admin

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestInProcess(t *testing.T) {
	t.Run("a handler sees the request as a server's would", func(t *testing.T) {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			w.Header().Set("X-Seen", r.Method+" "+r.URL.String()+" "+r.Header.Get("If-Match")+" "+string(b))
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, "body")
		})
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, host+"/a?b=c", strings.NewReader("in"))
		r.Header.Set("If-Match", `"3"`)
		answer, err := (&http.Client{Transport: InProcess(h)}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer closeBody(answer)
		b, _ := io.ReadAll(answer.Body)
		if got, want := fmt.Sprint(answer.StatusCode, answer.Header.Get("X-Seen"), string(b)), `418PUT http://leasehold/a?b=c "3" inbody`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})

	t.Run("a stream is read as it is written, and closing it ends its handler", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ended := false
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() { ended = true }()
				for n := 0; ; n++ {
					_, _ = fmt.Fprintln(w, n)
					_ = http.NewResponseController(w).Flush()
					select {
					case <-time.After(time.Second):
					case <-r.Context().Done():
						return
					}
				}
			})
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, host, nil)
			answer, err := (&http.Client{Transport: InProcess(h)}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			in := bufio.NewScanner(answer.Body)
			for want := range 3 {
				if !in.Scan() || in.Text() != fmt.Sprint(want) {
					t.Fatalf("got %q, want %d", in.Text(), want)
				}
			}
			closeBody(answer)
			if !ended {
				t.Error("the handler runs after Close, want it ended")
			}
		})
	})

	t.Run("a handler that says nothing answers 200", func(t *testing.T) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, host, nil)
		answer, err := (&http.Client{Transport: InProcess(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		closeBody(answer)
		if answer.StatusCode != http.StatusOK {
			t.Errorf("got %d, want 200", answer.StatusCode)
		}
	})
}
