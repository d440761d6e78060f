package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"leasehold/admin"
)

func TestEvents(t *testing.T) {
	t.Run("they are paged newest first, and oldest first after a cursor", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		w.hold()
		w.accept(5, "app")
		list := func(q url.Values) (seqs []int64, next string) {
			page, err := w.client().Events(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Items {
				seqs = append(seqs, e.Seq)
			}
			return seqs, page.Next
		}
		for _, c := range []struct {
			q    url.Values
			seqs string
			next string
		}{
			{url.Values{"limit": {"2"}}, "[5 4]", "4"},
			{url.Values{"limit": {"2"}, "before": {"4"}}, "[3 2]", "2"},
			{url.Values{"limit": {"2"}, "before": {"2"}}, "[1]", ""},
			{url.Values{"limit": {"2"}, "after": {"2"}}, "[3 4]", "4"},
			{url.Values{"limit": {"2"}, "after": {"4"}}, "[5]", ""},
			{url.Values{"installation": {"other"}}, "[]", ""},
			{url.Values{"type": {"command"}}, "[]", ""},
		} {
			if seqs, next := list(c.q); fmt.Sprint(seqs) != c.seqs || next != c.next {
				t.Errorf("%v: got %v, next %q, want %s, %q", c.q, seqs, next, c.seqs, c.next)
			}
		}
	})

	t.Run("one is shown with its body and its journey, secrets taken out", func(t *testing.T) {
		w := newWorld(t)
		w.want(w.do("PUT", "/v1/installations/acme", `{"type":"chat","config":{"url":"ws://x","token":{"env":"THERE"}}}`), http.StatusCreated)
		w.hold()
		w.accept(1, "app")
		page, err := w.client().Events(t.Context(), nil)
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("got %v, %v, want one event", page, err)
		}
		a := w.want(w.do("GET", "/v1/events/"+page.Items[0].ID, ""), http.StatusOK, `"text":"text 1 [redacted]"`, `"target":"app"`, `"state":"pending"`)
		if strings.Contains(a.body, secretValue) {
			t.Errorf("got %s, want it without the secret", a.body)
		}
		w.want(w.do("GET", "/v1/events/evt_x", ""), http.StatusNotFound, "there is no event evt_x")
	})
}

// tail collects n events of a tail, then ends it.
func tail(t *testing.T, w *world, q url.Values, n int, then func()) []admin.Event {
	t.Helper()
	var seen []admin.Event
	enough := errors.New("enough")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := w.client().Tail(ctx, q, func(e admin.Event) error {
		if seen = append(seen, e); len(seen) == n {
			return enough
		}
		if then != nil {
			then()
		}
		return nil
	}, func(err error) { t.Errorf("the stream was cut: %v", err) })
	if !errors.Is(err, enough) {
		t.Fatalf("got %v after %d events, want %d events", err, len(seen), n)
	}
	return seen
}

func seqsOf(events []admin.Event) (seqs []int64) {
	for _, e := range events {
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

func TestTail(t *testing.T) {
	t.Run("it begins after the event it is told, and follows what is accepted while it looks", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		w.hold()
		w.accept(3)
		fed := false
		got := seqsOf(tail(t, w, url.Values{"after": {"1"}}, 4, func() {
			if !fed {
				fed = true
				w.accept(2)
			}
		}))
		if want := []int64{2, 3, 4, 5}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})

	t.Run("from the beginning it shows every event once, however many there are", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		w.hold()
		const n = 1100 // two full pages and a part
		w.accept(n)
		got := seqsOf(tail(t, w, url.Values{"after": {"0"}}, n, nil))
		for i, seq := range got {
			if seq != int64(i+1) {
				t.Fatalf("event %d: got seq %d, want %d", i, seq, i+1)
			}
		}
	})

	t.Run("a body is sent when it is asked for", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		w.hold()
		w.accept(2)
		with := tail(t, w, url.Values{"after": {"1"}, "body": {"true"}}, 1, nil)
		without := tail(t, w, url.Values{"after": {"1"}}, 1, nil)
		if !strings.Contains(string(with[0].Body), "text 2") || len(without[0].Body) > 0 {
			t.Errorf("got bodies %q and %q, want the first only", with[0].Body, without[0].Body)
		}
	})

	t.Run("without a beginning it shows nothing that is there already", func(t *testing.T) {
		w := newWorld(t)
		w.put("acme")
		w.hold()
		w.accept(3)
		began := make(chan struct{})
		h := admin.New(w.options)
		c := admin.NewClient(admin.InProcess(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(first{rw, began}, r)
		})))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			<-began // it has read where it begins
			w.accept(1)
		}()
		var got admin.Event
		err := c.Tail(ctx, nil, func(e admin.Event) error { got = e; cancel(); return nil }, func(error) {})
		if err != nil || got.Seq != 4 {
			t.Errorf("got event %d, %v, want 4", got.Seq, err)
		}
	})

	t.Run("a wrong beginning is refused", func(t *testing.T) {
		w := newWorld(t)
		w.want(w.do("GET", "/v1/events/tail", "", "Last-Event-ID", "x"), 422, "Last-Event-ID")
		w.want(w.do("GET", "/v1/events/tail?after=-1", ""), 422, "after")
		if err := w.client().Tail(t.Context(), url.Values{"body": {"yes"}}, nil, nil); err == nil || !strings.Contains(err.Error(), "must be one of true, false") {
			t.Errorf("got %v, want a refusal", err)
		}
	})

	t.Run("a stream that is cut is taken up after the last event seen", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var resumed []string
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				resumed = append(resumed, r.Header.Get("Last-Event-ID"))
				from := len(resumed)
				if from == 2 { // the server is gone for a while
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				for i := range 2 {
					_, _ = fmt.Fprintf(w, ":\n\nid: %d\nevent: event\ndata: {\"seq\":%d}\n\n", from*10+i, from*10+i)
				}
			})
			var seen []string
			cuts := 0
			enough := errors.New("enough")
			err := admin.NewClient(admin.InProcess(h)).Tail(t.Context(), nil, func(e admin.Event) error {
				if seen = append(seen, strconv.FormatInt(e.Seq, 10)); len(seen) == 4 {
					return enough
				}
				return nil
			}, func(error) { cuts++ })
			if !errors.Is(err, enough) {
				t.Fatalf("got %v, want our own error", err)
			}
			if got, want := fmt.Sprint(seen, resumed, cuts), "[10 11 30 31] [ 11 11] 2"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	})
}

// first tells when an answer begins.
type first struct {
	http.ResponseWriter
	began chan struct{}
}

func (f first) Flush() {
	select {
	case <-f.began:
	default:
		close(f.began)
	}
}
