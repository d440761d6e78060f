package app

import (
	"testing"
	"time"

	"leasehold/admin"
	"leasehold/internal/human"
)

func TestNext(t *testing.T) {
	past, future := time.Now().Add(-time.Minute), time.Now().Add(90*time.Minute)
	stopped := map[string]string{"app": "down"}
	for _, c := range []struct {
		name string
		is   admin.Delivery
		want string
	}{
		{"it is due, and its target takes calls", admin.Delivery{Target: "log", State: "pending", NextAttempt: past}, "now"},
		{"it is due, and its target is down", admin.Delivery{Target: "app", State: "pending", NextAttempt: past}, "target down"},
		{"it is not due", admin.Delivery{Target: "app", State: "pending", NextAttempt: future}, human.In(future)},
		{"it is over", admin.Delivery{Target: "app", State: "delivered"}, "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := next(c.is, stopped); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
