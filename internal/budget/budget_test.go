package budget_test

import (
	"testing"
	"testing/synctest"

	"leasehold/internal/budget"
)

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, done := budget.New(10), make(chan struct{})
		if !b.Take(100, done) {
			t.Error("got the first part refused, want one of any size taken")
		}
		took := make(chan bool, 1)
		go func() { took <- b.Take(4, done) }()
		synctest.Wait()
		if len(took) != 0 {
			t.Error("got a second part while the first is above the limit, want it to wait")
		}
		b.Give(100)
		if !<-took || !b.Take(6, done) {
			t.Error("got a part refused that fits")
		}
		go func() { took <- b.Take(1, done) }()
		synctest.Wait()
		close(done)
		if <-took {
			t.Error("got a part after the end, want to be told")
		}
	})
}
