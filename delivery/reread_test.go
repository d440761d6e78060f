package delivery

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// halfOutbox stores the first mark of the first call and not the second, and from
// then on takes a minute to read.
type halfOutbox struct {
	*fakeOutbox
	halved atomic.Bool
}

func (o *halfOutbox) Mark(ctx context.Context, marks []Mark) ([]error, error) {
	if len(marks) < 2 || !o.halved.CompareAndSwap(false, true) {
		return o.fakeOutbox.Mark(ctx, marks)
	}
	errs, err := o.fakeOutbox.Mark(ctx, marks[:1])
	return append(errs, errFake), err
}

func (o *halfOutbox) Pending(ctx context.Context, lease string, seq int64, target string, limit int) ([]Item, error) {
	if o.halved.Load() {
		time.Sleep(time.Minute)
	}
	return o.fakeOutbox.Pending(ctx, lease, seq, target, limit)
}

func TestReread(t *testing.T) {
	t.Run("what kept its place does not go before what is still to be read again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			box := &halfOutbox{fakeOutbox: newOutbox()}
			sink := &fakeSink{
				answerBatch: func(context.Context, []Delivery) Result { return Result{Outcome: Down, Reason: "refused"} },
				answer:      func(context.Context, Delivery) Result { return Result{Outcome: Taken} },
			}
			b := start(t, box, Options{}, Target{Name: "app", Sink: sink, OnFailure: Hold, Batch: 2, Concurrency: 4})
			box.say("a", "C1", "app")
			box.say("a", "C1", "app")
			b.Hold(box.grant("a"))
			for !box.halved.Load() {
				time.Sleep(time.Millisecond)
			}
			synctest.Wait()
			b.Wake("a")
			time.Sleep(time.Hour)
			same(t, "taken", fmt.Sprint(sink.got()), fmt.Sprint(evt(1, 2)))
		})
	})
}
