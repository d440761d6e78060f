package channel_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"leasehold/channel"
)

func TestClassify(t *testing.T) {
	cause := errors.New("cause")
	for name, c := range map[string]struct {
		err   error
		class channel.Class
		code  string
		after time.Duration
	}{
		"a plain error is transient":             {cause, channel.Transient, "disconnected", 0},
		"failed is transient with its own code":  {channel.Failed("close_1011", cause), channel.Transient, "close_1011", 0},
		"recycle":                                {channel.Recycle(cause), channel.ClassRecycle, "recycle", 0},
		"rate limited carries the wait":          {channel.RateLimited(cause, time.Minute), channel.ClassRateLimited, "rate_limited", time.Minute},
		"rejected carries its code":              {channel.Rejected("auth", cause), channel.ClassRejected, "auth", 0},
		"superseded":                             {channel.Superseded(cause), channel.ClassSuperseded, "superseded", 0},
		"a wrapped exit keeps its class":         {fmt.Errorf("run: %w", channel.Rejected("auth", cause)), channel.ClassRejected, "auth", 0},
		"a joined exit keeps its class":          {errors.Join(io.EOF, channel.RateLimited(cause, time.Second)), channel.ClassRateLimited, "rate_limited", time.Second},
		"the outermost of two exits is believed": {channel.Recycle(channel.Rejected("auth", cause)), channel.ClassRecycle, "recycle", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := channel.Classify(c.err)
			if got.Class != c.class || got.Code != c.code || got.After != c.after {
				t.Errorf("got %s %q after %s, want %s %q after %s", got.Class, got.Code, got.After, c.class, c.code, c.after)
			}
			if !errors.Is(got.Err, cause) || got.Err.Error() != c.err.Error() {
				t.Errorf("got %v, want the words and the cause of %v", got.Err, c.err)
			}
		})
	}
}

func TestClassesHaveTheNamesThatMetricsUse(t *testing.T) {
	for class, want := range map[channel.Class]string{
		channel.Transient: "transient", channel.ClassRecycle: "recycle", channel.ClassRateLimited: "rate_limited",
		channel.ClassRejected: "rejected", channel.ClassSuperseded: "superseded",
	} {
		if got := class.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOutcome(t *testing.T) {
	cause := errors.New("cause")
	for name, c := range map[string]struct {
		err  error
		want channel.SendOutcome
	}{
		"a plain error leaves the outcome unknown": {cause, channel.SendUnknown},
		"not sent":                  {channel.NotSent(cause), channel.SendNot},
		"refused":                   {fmt.Errorf("send: %w", channel.Refused(cause)), channel.SendRefused},
		"rate limited was not sent": {channel.RateLimited(cause, time.Second), channel.SendNot},
		"another exit is unknown":   {channel.Rejected("auth", cause), channel.SendUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := channel.Outcome(c.err); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
			if !errors.Is(c.err, cause) {
				t.Error("the cause is lost")
			}
		})
	}
}
