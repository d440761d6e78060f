package app

import (
	"context"
	"io"
	"runtime"
	"time"

	"leasehold/delivery"
	"leasehold/internal/metrics"
)

// Metrics writes the page. It reads the store, and writes nothing.
func (n *node) Metrics(ctx context.Context, w io.Writer) error {
	m := n.meter
	m.page.Lock()
	defer m.page.Unlock()
	m.started.Set(float64(n.started.UnixMilli()) / 1000)
	m.built.Set(1, buildVersion().Version, runtime.Version())
	n.measureEngine()
	n.measureDelivery()
	for _, f := range []*metrics.Family{m.stored, m.messages, m.storeBytes} {
		f.Clear()
	}
	if t, err := n.store.Totals(ctx); err == nil { // else store_up says so
		for state, count := range t.Deliveries {
			m.stored.Set(float64(count), state)
		}
		m.messages.Set(float64(t.Messages))
		m.storeBytes.Set(float64(t.Bytes))
	}
	m.taskSuccess.Clear()
	m.taskFailures.Clear()
	for _, t := range n.tasks.Status() {
		if !t.LastSuccess.IsZero() {
			m.taskSuccess.Set(float64(t.LastSuccess.UnixMilli())/1000, t.Name)
		}
		m.taskFailures.Set(float64(t.ConsecutiveFailures), t.Name)
	}
	m.limited.Set(float64(n.mailer.Held()))
	m.violations.Set(float64(n.audit.violations.Load()))
	dropped, _, _ := n.drops.Count()
	m.dropped.Set(float64(dropped))
	if t := m.tended.Load(); t != nil && n.store.Sole() {
		m.diskFree.Set(float64(t.DiskFree))
		m.logBytes.Set(float64(t.LogBytes))
	}
	return m.Write(w)
}

func (n *node) measureEngine() {
	m, s := n.meter, n.supervisor.Status()
	m.links.Clear()
	for _, l := range s.Links {
		m.links.Add(1, m.typeOf(l.Installation), string(l.State))
	}
	m.held.Set(float64(s.Held))
	m.leaked.Set(float64(s.Leaked))
	m.oversized.Set(float64(s.Oversized))
	m.drained.Set(truth(s.Drained))
	m.storeUp.Set(truth(s.Store == nil))
	if at := m.renewed.Load(); at > 0 && !s.Sole {
		trust := timingOf(n.config.Load()).Trust() - time.Since(time.UnixMilli(at))
		m.trust.Set(max(0, trust.Seconds()))
	}
}

func (n *node) measureDelivery() {
	m := n.meter
	for _, f := range []*metrics.Family{m.journeys, m.waiting, m.oldest, m.flying, m.circuits} {
		f.Clear()
	}
	for _, t := range n.dispatcher.Stats().Targets {
		m.journeys.Set(float64(t.Delivered), t.Name, "delivered")
		m.journeys.Set(float64(t.Failed), t.Name, "failed")
		m.journeys.Set(float64(t.Dead), t.Name, "dead")
		m.waiting.Set(float64(t.Waiting), t.Name)
		age := 0.0
		if !t.Oldest.IsZero() {
			age = max(0, time.Since(t.Oldest).Seconds())
		}
		m.oldest.Set(age, t.Name)
		m.flying.Set(float64(t.InFlight), t.Name)
		m.circuits.Set(truth(t.State == delivery.Open), t.Name)
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
