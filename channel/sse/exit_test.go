package sse_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/sse/ssefake"
)

func TestAnswersThatAreNoStream(t *testing.T) {
	for _, c := range []struct {
		name  string
		how   ssefake.Behaviour
		class channel.Class
		code  string
		after time.Duration
		words string
	}{
		{"204", ssefake.Behaviour{Status: 204}, channel.ClassRejected, "gone", 0, "not to ask again"},
		{"401", ssefake.Behaviour{Status: 401}, channel.ClassRejected, "auth", 0, "check headers and secrets"},
		{"403", ssefake.Behaviour{Status: 403}, channel.ClassRejected, "auth", 0, ""},
		{"400", ssefake.Behaviour{Status: 400}, channel.ClassRejected, "http_400", 0, "check url, method and headers"},
		{"404", ssefake.Behaviour{Status: 404}, channel.ClassRejected, "http_404", 0, ""},
		{"405", ssefake.Behaviour{Status: 405}, channel.ClassRejected, "http_405", 0, ""},
		{"406", ssefake.Behaviour{Status: 406}, channel.ClassRejected, "http_406", 0, ""},
		{"410", ssefake.Behaviour{Status: 410}, channel.ClassRejected, "http_410", 0, ""},
		{"418", ssefake.Behaviour{Status: 418}, channel.ClassRejected, "http_418", 0, ""},
		{"202", ssefake.Behaviour{Status: 202}, channel.ClassRejected, "http_202", 0, ""},
		{"408", ssefake.Behaviour{Status: 408}, channel.Transient, "http_408", 0, ""},
		{"425", ssefake.Behaviour{Status: 425}, channel.Transient, "http_425", 0, ""},
		{"429 with seconds", ssefake.Behaviour{Status: 429, RetryAfter: "120"}, channel.ClassRateLimited, "rate_limited", 2 * time.Minute, ""},
		{"429 without", ssefake.Behaviour{Status: 429}, channel.ClassRateLimited, "rate_limited", 30 * time.Second, ""},
		{"429 with a date", ssefake.Behaviour{Status: 429, RetryAfter: "Sat, 01 Jan 2000 00:01:00 GMT"}, channel.ClassRateLimited, "rate_limited", time.Minute, ""},
		{"429 with a century", ssefake.Behaviour{Status: 429, RetryAfter: "3000000000"}, channel.ClassRateLimited, "rate_limited", 24 * time.Hour, ""},
		{"503 with seconds", ssefake.Behaviour{Status: 503, RetryAfter: "7"}, channel.ClassRateLimited, "rate_limited", 7 * time.Second, ""},
		{"503 without", ssefake.Behaviour{Status: 503}, channel.Transient, "http_503", 0, ""},
		{"500", ssefake.Behaviour{Status: 500}, channel.Transient, "http_500", 0, ""},
		{"502", ssefake.Behaviour{Status: 502}, channel.Transient, "http_502", 0, ""},
		{"a redirect to another host", ssefake.Behaviour{Status: 302, Location: "http://elsewhere.test/"}, channel.ClassRejected, "http_302", 0, "another host"},
		{"a redirect to nowhere", ssefake.Behaviour{Status: 304}, channel.ClassRejected, "http_304", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, ssefake.Options{}, func(w *world) {
				c.how.Body = "the server's\nown words"
				w.fake.Behave(bot, c.how)
				b := w.start()
				got := w.WantExit(b, c.class, c.code)
				if got.After != c.after {
					t.Errorf("got a wait of %s, want %s", got.After, c.after)
				}
				if c.words == "" && c.how.Status != 304 {
					c.words = "the server's own words"
				}
				if !strings.Contains(got.Err.Error(), c.words) {
					t.Errorf("got %q, want %q", got.Err, c.words)
				}
				if n := len(b.Readies()); n != 0 {
					t.Errorf("got %d readies, want none", n)
				}
				if n := w.Net.Dials(); n != 1 {
					t.Errorf("got %d dials, want one: our headers go nowhere else", n)
				}
			})
		})
	}
	for name, c := range map[string]struct {
		how         ssefake.Behaviour
		code, words string
	}{
		"a page":                {ssefake.Behaviour{Type: "text/html"}, "content_type", `answered with "text/html" in place of text/event-stream`},
		"JSON":                  {ssefake.Behaviour{Type: "application/json"}, "content_type", "application/json"},
		"no type that is one":   {ssefake.Behaviour{Type: ";"}, "content_type", ""},
		"what only looks alike": {ssefake.Behaviour{Type: "text/event-streams"}, "content_type", ""},
		"a compressed stream":   {ssefake.Behaviour{Encoding: "gzip"}, "content_encoding", "turn that off there"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, ssefake.Options{}, func(w *world) {
				w.fake.Behave(bot, c.how)
				b := w.start()
				if got := w.WantExit(b, channel.ClassRejected, c.code); !strings.Contains(got.Err.Error(), c.words) || len(b.Readies()) != 0 {
					t.Errorf("got %q and %d readies, want %q and none", got.Err, len(b.Readies()), c.words)
				}
			})
		})
	}
	t.Run("the type may be written in any way", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			w.fake.Behave(bot, ssefake.Behaviour{Type: "Text/Event-Stream;charset=UTF-8", Encoding: "identity"})
			w.Stop(w.connected(), channel.ErrDraining)
		})
	})
	t.Run("a redirect on the same host is followed", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			w.fake.Behave("old", ssefake.Behaviour{Status: 307, Location: "/bot/" + bot})
			w.Config["url"] = "http://" + platform + "/bot/old"
			b := w.connected()
			w.fake.Push(bot, 1)
			synctest.Wait()
			if got := w.Kept(); len(got) != 1 {
				t.Errorf("got %q, want the event", got)
			}
			w.Stop(b, channel.ErrDraining)
			w.NoViolations()
		})
	})
	t.Run("a server that repeats the secret does not make us repeat it", func(t *testing.T) {
		bubble(t, ssefake.Options{Token: func(string) string { return "another" }}, func(w *world) {
			got := w.WantExit(w.start(), channel.ClassRejected, "auth")
			if !strings.Contains(got.Err.Error(), "401 Unauthorized: invalid token [redacted]; check headers and secrets") {
				t.Errorf("got %q, want the words without the secret, and the next step", got.Err)
			}
		})
	})
	t.Run("nor the one in the body", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			w.Config["method"], w.Config["body"] = "POST", map[string]any{"env": "TOKEN"}
			w.fake.Behave(bot, ssefake.Behaviour{Status: 400, Body: "what is " + token + "?"})
			got := w.WantExit(w.start(), channel.ClassRejected, "http_400")
			if !strings.Contains(got.Err.Error(), "what is [redacted]?") {
				t.Errorf("got %q, want the words without the secret", got.Err)
			}
		})
	})
	t.Run("a secret in the URL stays out of every word", func(t *testing.T) {
		for name, prepare := range map[string]func(w *world){
			"refused": func(w *world) { w.Net.Refuse(true) }, "unauthorized": func(*world) {}, "hanging": func(w *world) { w.Net.Blackhole(true) },
			"another host": func(w *world) { w.Config["url"] = "http://nowhere.test:1/?token={{token}}" },
			"a redirect": func(w *world) {
				w.fake.Behave(bot, ssefake.Behaviour{Status: 302, Location: "http://elsewhere.test/?token=" + token, Body: "to http://elsewhere.test/?token=" + token})
			},
			"a redirect to no address": func(w *world) {
				w.fake.Behave(bot, ssefake.Behaviour{Status: 302, Location: "http://" + token + ":x/"})
			},
			"a type": func(w *world) { w.fake.Behave(bot, ssefake.Behaviour{Type: "text/" + token}) },
		} {
			bubble(t, ssefake.Options{Token: func(string) string { return "another" }}, func(w *world) {
				delete(w.Config, "headers")
				w.Config["url"] = "http://" + platform + "/bot/a?token={{token}}"
				prepare(w)
				b := w.start()
				if err := b.Wait(); err == nil {
					t.Errorf("%s: got no error, want one", name)
				}
				w.NoSecret(b)
			})
		}
	})
}

func TestEndsOfAStream(t *testing.T) {
	for _, c := range []struct {
		name  string
		retry string
		open  time.Duration
		end   func(w *world)
		class channel.Class
		code  string
		after time.Duration
	}{
		{"an orderly end is no failure", "", time.Minute, func(w *world) { w.fake.End(bot) }, channel.ClassRecycle, "recycle", 0},
		{"an orderly end right after the answer is one", "", 5 * time.Second, func(w *world) { w.fake.End(bot) }, channel.Transient, "closed", 0},
		{"a retry is waited for", "60000", time.Second, func(w *world) { w.fake.End(bot) }, channel.ClassRateLimited, "rate_limited", time.Minute},
		{"a long one, too", "60000", time.Hour, func(w *world) { w.fake.End(bot) }, channel.ClassRateLimited, "rate_limited", time.Minute},
		{"but not for a century", "3155760000000", time.Minute, func(w *world) { w.fake.End(bot) }, channel.ClassRateLimited, "rate_limited", 24 * time.Hour},
		{"a retry below our own wait asks for nothing", "2000", time.Minute, func(w *world) { w.fake.End(bot) }, channel.ClassRecycle, "recycle", 0},
		{"a retry that is no number is none", "1e9", time.Minute, func(w *world) { w.fake.End(bot) }, channel.ClassRecycle, "recycle", 0},
		{"a reset is transient", "", time.Minute, func(w *world) { w.Net.Cut() }, channel.Transient, "broken", 0},
		{"whatever retry says", "60000", time.Minute, func(w *world) { w.Net.Cut() }, channel.Transient, "broken", 0},
		{"an end within a chunk is transient", "60000", time.Minute, func(w *world) { w.Net.HalfClose() }, channel.Transient, "broken", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, ssefake.Options{}, func(w *world) {
				w.fake.Behave(bot, ssefake.Behaviour{Retry: c.retry})
				b := w.connected()
				time.Sleep(c.open)
				c.end(w)
				if got := w.WantExit(b, c.class, c.code); got.After != c.after {
					t.Errorf("got a wait of %s, want %s", got.After, c.after)
				}
				synctest.Wait()
				if got := w.fake.Live(bot); got != 0 {
					t.Errorf("got %d connections left, want none", got)
				}
			})
		})
	}
	t.Run("a drop right after the answer is transient", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			w.fake.Behave(bot, ssefake.Behaviour{Drop: true})
			w.WantExit(w.start(), channel.Transient, "broken")
		})
	})
	t.Run("a server that is asked, answers and closes is asked again when it says", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			w.fake.Behave(bot, ssefake.Behaviour{Retry: "60000", End: true})
			for i := range 3 {
				w.fake.Push(bot, 2)
				w.WantExit(w.start(), channel.ClassRateLimited, "rate_limited")
				if got := w.Kept(); len(got) != 2*(i+1) {
					t.Errorf("got %q, want all of %d events", got, 2*(i+1))
				}
			}
			w.NoViolations()
		})
	})
}

func TestEveryStepHasADeadline(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(w *world)
		code    string
		within  time.Duration
	}{
		"a dial without an answer":    {func(w *world) { w.Net.Blackhole(true) }, "dial", 10 * time.Second},
		"a request without an answer": {func(w *world) { w.fake.Behave(bot, ssefake.Behaviour{Stall: true}) }, "no_answer", 30 * time.Second},
		"half a refusal": {func(w *world) {
			w.fake.Behave(bot, ssefake.Behaviour{Status: 500, Body: "half", HalfBody: true})
		}, "no_answer", 30 * time.Second},
		"an answer that comes with the first event": {func(w *world) { w.fake.Behave(bot, ssefake.Behaviour{Late: true}) }, "no_answer", 30 * time.Second},
		"answer_within": {func(w *world) {
			w.Config["answer_within"] = "5m"
			w.fake.Behave(bot, ssefake.Behaviour{Late: true})
		}, "no_answer", 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, ssefake.Options{}, func(w *world) {
				c.prepare(w)
				start := time.Now()
				w.WantExit(w.start(), channel.Transient, c.code)
				if took := time.Since(start); took != c.within {
					t.Errorf("got an end after %s, want %s", took, c.within)
				}
			})
		})
	}
	t.Run("an answer that comes with the first event in time", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			w.Config["answer_within"] = "5m"
			w.fake.Behave(bot, ssefake.Behaviour{Late: true})
			b := w.start()
			time.Sleep(4 * time.Minute)
			if n := len(b.Readies()); n != 0 {
				t.Errorf("got %d readies before the server said anything, want none", n)
			}
			w.fake.Push(bot, 1)
			synctest.Wait()
			if got := w.Kept(); len(got) != 1 || len(b.Readies()) != 1 {
				t.Errorf("got %q and %d readies, want the event and one", got, len(b.Readies()))
			}
			w.Stop(b, channel.ErrDraining)
		})
	})
}

func TestStopReturnsAtOnceInEveryState(t *testing.T) {
	for name, prepare := range map[string]func(w *world){
		"connected":              func(*world) {},
		"dialling":               func(w *world) { w.Net.Blackhole(true) },
		"waiting for the answer": func(w *world) { w.fake.Behave(bot, ssefake.Behaviour{Stall: true}) },
		"reading a refusal":      func(w *world) { w.fake.Behave(bot, ssefake.Behaviour{Status: 500, Body: "x", HalfBody: true}) },
		"mute":                   func(w *world) { time.AfterFunc(time.Second, w.Net.Pause) },
		"a flood":                func(w *world) { w.fake.Push(bot, 5_000) },
	} {
		for _, cause := range []error{channel.ErrDraining, channel.ErrReplaced, channel.ErrRemoved, channel.ErrParked, channel.ErrFenced} {
			t.Run(name+", "+cause.Error(), func(t *testing.T) {
				bubble(t, ssefake.Options{}, func(w *world) {
					prepare(w)
					b := w.start()
					time.Sleep(4 * time.Second)
					w.Stop(b, cause)
				})
			})
		}
	}
	t.Run("the kill ends it while the disk hangs", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			b := w.connected()
			w.Memory.Hold()
			w.fake.Push(bot, 5000)
			synctest.Wait()
			b.Kill()
			if err := b.Wait(); err != nil {
				t.Errorf("got %v, want nil", err)
			}
		})
	})
	t.Run("a drain commits what was heard", func(t *testing.T) {
		bubble(t, ssefake.Options{}, func(w *world) {
			b := w.connected()
			release := w.Memory.Hold()
			w.fake.Push(bot, 100)
			synctest.Wait()
			time.AfterFunc(500*time.Millisecond, release)
			w.Stop(b, channel.ErrDraining)
			if got := w.Kept(); len(got) != 100 || !strings.Contains(string(w.Memory.Cursor()), "a-000100") {
				t.Errorf("got %d kept and cursor %s, want 100", len(got), w.Memory.Cursor())
			}
		})
	})
}
