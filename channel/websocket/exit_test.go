package websocket_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leasehold/channel"
	"leasehold/channel/websocket/websocketfake"
)

func TestCloseCodes(t *testing.T) {
	for code, want := range map[int]struct {
		class channel.Class
		code  string
	}{
		1000: {channel.ClassRecycle, "recycle"},
		1001: {channel.ClassRecycle, "recycle"},
		1012: {channel.ClassRecycle, "recycle"},
		1013: {channel.ClassRateLimited, "rate_limited"},
		1002: {channel.Transient, "close_1002"},
		1011: {channel.Transient, "close_1011"},
		1014: {channel.Transient, "close_1014"},
		1003: {channel.ClassRejected, "close_1003"},
		1007: {channel.ClassRejected, "close_1007"},
		1008: {channel.ClassRejected, "close_1008"},
		1009: {channel.ClassRejected, "close_1009"},
		3000: {channel.Transient, "close_3000"},
		4000: {channel.Transient, "close_4000"},
		4001: {channel.ClassRejected, "auth"},
		4003: {channel.ClassRejected, "auth"},
		4401: {channel.ClassRejected, "auth"},
		4403: {channel.ClassRejected, "auth"},
		4999: {channel.Transient, "close_4999"},
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, websocketfake.Options{}, func(w *world) {
				b := w.connected()
				time.Sleep(time.Minute)
				w.fake.CloseWith(bot, code, "because\n"+fmt.Sprint(code))
				got := w.WantExit(b, want.class, want.code)
				if !strings.Contains(got.Err.Error(), fmt.Sprintf("with %d: because %d", code, code)) {
					t.Errorf("got %q, want the platform's words in one line", got.Err)
				}
				if want.class == channel.ClassRateLimited && got.After != 30*time.Second {
					t.Errorf("got a wait of %s, want 30s", got.After)
				}
			})
		})
	}
	t.Run("auth_codes replace the defaults", func(t *testing.T) {
		for code, want := range map[int]channel.Class{4242: channel.ClassRejected, 4001: channel.Transient} {
			bubble(t, websocketfake.Options{}, func(w *world) {
				w.Config["auth_codes"] = []int{4242}
				b := w.connected()
				w.fake.CloseWith(bot, code, "")
				if got := channel.Classify(b.Wait()).Class; got != want {
					t.Errorf("%d: got %s, want %s", code, got, want)
				}
			})
		}
	})
	t.Run("an end without a close frame is transient", func(t *testing.T) {
		for name, end := range map[string]func(w *world){
			"reset": func(w *world) { w.Net.Cut() }, "end of the stream": func(w *world) { w.Net.HalfClose() },
		} {
			bubble(t, websocketfake.Options{}, func(w *world) {
				b := w.connected()
				end(w)
				if got := w.WantExit(b, channel.Transient, "close_1006"); !strings.Contains(got.Err.Error(), "connection broke") {
					t.Errorf("%s: got %v, want to be told that it broke", name, got.Err)
				}
			})
		}
	})
	t.Run("an orderly close right after ready is no recycling", func(t *testing.T) {
		for _, code := range []int{1000, 1001, 1012} {
			bubble(t, websocketfake.Options{}, func(w *world) {
				w.fake.Behave(bot, websocketfake.Behaviour{Code: code})
				w.WantExit(w.start(), channel.Transient, fmt.Sprintf("close_%d", code))
			})
		}
	})
	t.Run("a drop right after the upgrade is transient", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.fake.Behave(bot, websocketfake.Behaviour{Drop: true})
			b := w.start()
			w.WantExit(b, channel.Transient, "close_1006")
			if len(b.Readies()) != 0 {
				t.Error("got ready from a server that said nothing")
			}
		})
	})
	t.Run("the platform's words are bounded and hold no secret", func(t *testing.T) {
		bubble(t, websocketfake.Options{Token: func(string) string { return token }}, func(w *world) {
			b := w.connected()
			w.fake.CloseWith(bot, 4001, "token "+token+" is revoked; so is "+token[:15])
			got := w.WantExit(b, channel.ClassRejected, "auth")
			if !strings.Contains(got.Err.Error(), "token [redacted] is revoked; so is [redacted]") {
				t.Errorf("got %q, want the secret taken out, cut short, too", got.Err)
			}
		})
	})
}

func TestHandshakes(t *testing.T) {
	for _, c := range []struct {
		name  string
		how   websocketfake.Behaviour
		class channel.Class
		code  string
		after time.Duration
	}{
		{"401", websocketfake.Behaviour{Status: 401}, channel.ClassRejected, "auth", 0},
		{"403", websocketfake.Behaviour{Status: 403}, channel.ClassRejected, "auth", 0},
		{"400", websocketfake.Behaviour{Status: 400}, channel.ClassRejected, "http_400", 0},
		{"404", websocketfake.Behaviour{Status: 404}, channel.ClassRejected, "http_404", 0},
		{"410", websocketfake.Behaviour{Status: 410}, channel.ClassRejected, "http_410", 0},
		{"426", websocketfake.Behaviour{Status: 426}, channel.ClassRejected, "http_426", 0},
		{"429 with seconds", websocketfake.Behaviour{Status: 429, RetryAfter: "120"}, channel.ClassRateLimited, "rate_limited", 2 * time.Minute},
		{"429 without", websocketfake.Behaviour{Status: 429}, channel.ClassRateLimited, "rate_limited", 30 * time.Second},
		{"429 with nonsense", websocketfake.Behaviour{Status: 429, RetryAfter: "soon"}, channel.ClassRateLimited, "rate_limited", 30 * time.Second},
		{"429 with a date", websocketfake.Behaviour{Status: 429, RetryAfter: "Sat, 01 Jan 2000 00:01:00 GMT"}, channel.ClassRateLimited, "rate_limited", time.Minute},
		{"429 with a date that has passed", websocketfake.Behaviour{Status: 429, RetryAfter: "Fri, 31 Dec 1999 00:00:00 GMT"}, channel.ClassRateLimited, "rate_limited", time.Second},
		{"429 with a century", websocketfake.Behaviour{Status: 429, RetryAfter: "3000000000"}, channel.ClassRateLimited, "rate_limited", 24 * time.Hour},
		{"503 with seconds", websocketfake.Behaviour{Status: 503, RetryAfter: "7"}, channel.ClassRateLimited, "rate_limited", 7 * time.Second},
		{"503 without", websocketfake.Behaviour{Status: 503}, channel.Transient, "http_503", 0},
		{"500", websocketfake.Behaviour{Status: 500}, channel.Transient, "http_500", 0},
		{"502", websocketfake.Behaviour{Status: 502}, channel.Transient, "http_502", 0},
		{"200 instead of an upgrade", websocketfake.Behaviour{Status: 200}, channel.Transient, "http_200", 0},
		{"418", websocketfake.Behaviour{Status: 418}, channel.Transient, "http_418", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, websocketfake.Options{}, func(w *world) {
				c.how.Body = "the platform's\nown words"
				w.fake.Behave(bot, c.how)
				b := w.start()
				got := w.WantExit(b, c.class, c.code)
				if got.After != c.after {
					t.Errorf("got a wait of %s, want %s", got.After, c.after)
				}
				if !strings.Contains(got.Err.Error(), "the platform's own words") {
					t.Errorf("got %q, want the platform's words", got.Err)
				}
				if n := len(b.Readies()); n != 0 {
					t.Errorf("got %d readies, want none", n)
				}
			})
		})
	}
	t.Run("a server that repeats the secret does not make us repeat it", func(t *testing.T) {
		bubble(t, websocketfake.Options{Token: func(string) string { return "another" }}, func(w *world) {
			got := w.WantExit(w.start(), channel.ClassRejected, "auth")
			if !strings.Contains(got.Err.Error(), "401 Unauthorized: invalid token [redacted]; check headers and secrets") {
				t.Errorf("got %q, want the words without the secret, and the next step", got.Err)
			}
		})
	})
	t.Run("a login that is refused in the stream", func(t *testing.T) {
		// A server that hangs up right behind its words may reset the connection before
		// they are read. Then the next attempt hears them.
		var got channel.Exit
		for range 5 {
			bubble(t, websocketfake.Options{Login: true, Token: func(string) string { return "another" }}, func(w *world) {
				got = channel.Classify(w.start().Wait())
			})
			if got.Code != "close_1006" {
				break
			}
		}
		if got.Class != channel.ClassRejected || got.Code != "auth" || !strings.Contains(got.Err.Error(), "check login and secrets") {
			t.Errorf("got %s %q (%v), want rejected \"auth\" with the next step", got.Class, got.Code, got.Err)
		}
	})
	t.Run("a secret in the URL stays out of every word", func(t *testing.T) {
		for name, break_ := range map[string]func(w *world){
			"refused": func(w *world) { w.Net.Refuse(true) }, "unauthorized": func(*world) {},
			"hanging": func(w *world) { w.Net.Blackhole(true) }, "another host": func(w *world) { w.Config["url"] = "ws://nowhere.test:1/?token={{token}}" },
		} {
			bubble(t, websocketfake.Options{Token: func(string) string { return "another" }}, func(w *world) {
				delete(w.Config, "headers")
				w.Config["url"] = "ws://" + platform + "/bot/a?token={{token}}"
				break_(w)
				b := w.start()
				if err := b.Wait(); err == nil {
					t.Errorf("%s: got no error, want one", name)
				}
				w.NoSecret(b)
			})
		}
	})
	t.Run("a refused dial is transient", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			w.Net.Refuse(true)
			got := w.WantExit(w.start(), channel.Transient, "dial")
			if !strings.HasPrefix(got.Err.Error(), "connect to "+platform+"/bot/a: ") || !strings.Contains(got.Err.Error(), "refused") {
				t.Errorf("got %q, want where and why", got.Err)
			}
		})
	})
	t.Run("every step has a deadline", func(t *testing.T) {
		for name, c := range map[string]struct {
			break_ func(w *world)
			code   string
			within time.Duration
		}{
			"a dial without an answer":     {func(w *world) { w.Net.Blackhole(true) }, "dial", 10 * time.Second},
			"an upgrade without an answer": {func(w *world) { w.fake.Behave(bot, websocketfake.Behaviour{Stall: true}) }, "dial", 10 * time.Second},
			"no hello":                     {func(w *world) { w.fake.Behave(bot, websocketfake.Behaviour{NoHello: true}) }, "no_ready", 30 * time.Second},
		} {
			bubble(t, websocketfake.Options{}, func(w *world) {
				c.break_(w)
				start := time.Now()
				w.WantExit(w.start(), channel.Transient, c.code)
				if took := time.Since(start); took != c.within {
					t.Errorf("%s: got an end after %s, want %s", name, took, c.within)
				}
			})
		}
	})
}

func TestStopReturnsAtOnceInEveryState(t *testing.T) {
	for name, prepare := range map[string]func(w *world){
		"connected":             func(*world) {},
		"dialling":              func(w *world) { w.Net.Blackhole(true) },
		"upgrading":             func(w *world) { w.fake.Behave(bot, websocketfake.Behaviour{Stall: true}) },
		"waiting for the hello": func(w *world) { w.fake.Behave(bot, websocketfake.Behaviour{NoHello: true}) },
		"mute":                  func(w *world) { time.AfterFunc(time.Second, w.Net.Pause) },
		"a platform that reads nothing": func(w *world) {
			w.fake.Behave(bot, websocketfake.Behaviour{Deaf: true})
		},
		"a flood": func(w *world) { w.fake.Push(bot, 5_000) },
	} {
		for _, cause := range []error{channel.ErrDraining, channel.ErrReplaced, channel.ErrRemoved, channel.ErrParked, channel.ErrFenced} {
			t.Run(name+", "+cause.Error(), func(t *testing.T) {
				bubble(t, websocketfake.Options{}, func(w *world) {
					prepare(w)
					b := w.start()
					time.Sleep(4 * time.Second)
					w.Stop(b, cause)
				})
			})
		}
	}
	t.Run("the kill ends it while the disk hangs", func(t *testing.T) {
		bubble(t, websocketfake.Options{}, func(w *world) {
			b := w.connected()
			w.Memory.Hold()
			w.fake.Push(bot, 5000)
			synctest.Wait()
			b.Kill()
			// The kill comes before the end of the context; the commit may see it first.
			if err := b.Wait(); err != nil && !errors.Is(err, channel.ErrFenced) {
				t.Errorf("got %v, want nil, or the lost lease", err)
			}
			if n := w.fake.AckedCount(bot); n != 0 {
				t.Errorf("got %d acknowledged, want none", n)
			}
		})
	})
}

func TestALostLeaseWritesNothingMore(t *testing.T) {
	bubble(t, websocketfake.Options{}, func(w *world) {
		b := w.connected()
		release := w.Memory.Hold()
		w.fake.Push(bot, 10)
		synctest.Wait()
		time.AfterFunc(100*time.Millisecond, release)
		if err := b.Stop(channel.ErrFenced); err != nil {
			t.Errorf("got %v, want nil", err)
		}
		synctest.Wait()
		if n := w.fake.AckedCount(bot); n != 0 {
			t.Errorf("got %d acknowledged after the lease was lost, want none", n)
		}
		if got := w.lastConnection().CloseCode; got != -1 {
			t.Errorf("got close code %d, want no goodbye", got)
		}
	})
}

func TestADrainCommitsAndAcknowledgesWhatWasHeard(t *testing.T) {
	bubble(t, websocketfake.Options{}, func(w *world) {
		b := w.connected()
		release := w.Memory.Hold()
		w.fake.Push(bot, 100)
		synctest.Wait()
		time.AfterFunc(500*time.Millisecond, release)
		w.Stop(b, channel.ErrDraining)
		if got := len(w.Kept()); got != 100 || w.fake.AckedCount(bot) != 100 {
			t.Errorf("got %d kept and %d acknowledged, want 100", got, w.fake.AckedCount(bot))
		}
		w.NoViolations()
	})
}

func TestAnAcknowledgementThatIsNotTakenEndsTheConnection(t *testing.T) {
	bubble(t, websocketfake.Options{}, func(w *world) {
		// Ten kilobytes of ack each: the buffers are full after a few.
		w.Config["ack"] = `{"type":"ack","id":{{id}},"pad":"` + strings.Repeat("x", 10_000) + `"}`
		w.fake.Behave(bot, websocketfake.Behaviour{Deaf: true})
		b := w.start()
		w.fake.Push(bot, 50)
		start := time.Now()
		w.WantExit(b, channel.Transient, "write_timeout")
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("got an end after %s, want 10s", took)
		}
		if got := len(w.Kept()); got != 50 {
			t.Errorf("got %d kept, want all 50 that were heard", got)
		}
	})
}

func TestANilErrorMeansThatTheContextEnded(t *testing.T) {
	bubble(t, websocketfake.Options{}, func(w *world) {
		b := w.connected()
		w.fake.Cut(bot)
		if err := b.Wait(); err == nil || errors.Is(err, channel.ErrDraining) {
			t.Errorf("got %v, want the platform's end", err)
		}
	})
}
