package outbound

import (
	"cmp"
	"fmt"
	"sync"
	"time"
)

const (
	// PaceMost is how many messages a target that may hear itself posts in PaceTime: what
	// most platforms let one sender say in one conversation, and more than people say.
	PaceMost = 60
	// PaceTime is also how long such a target then waits.
	PaceTime = time.Minute
)

// Pace bounds what targets that may be part of a circle post, so that messages which go
// round do it slowly, and somebody sees it. It keeps a few words for each target.
type Pace struct {
	Most int // in PaceTime; 0 = PaceMost

	mu    sync.Mutex // guards tally
	tally map[string]*minute
}

// minute is what one target posted since it began; it is full at PaceMost.
type minute struct {
	began time.Time
	n     int
	until time.Time // nothing is posted before
}

func (p *Pace) most() int { return cmp.Or(p.Most, PaceMost) }

// take notes one post of a target, or returns how long it is to wait and why.
func (p *Pace) take(target string) (wait time.Duration, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	m := p.tally[target]
	if m == nil || now.Sub(m.began) >= PaceTime && !now.Before(m.until) {
		if p.tally == nil {
			p.tally = map[string]*minute{}
		}
		m = &minute{began: now}
		p.tally[target] = m
	}
	if m.until.IsZero() && m.n >= p.most() {
		m.until = now.Add(PaceTime)
	}
	if now.Before(m.until) {
		return m.until.Sub(now), fmt.Sprintf("more than %d posts a minute into one conversation: a loop?", p.most())
	}
	m.n++
	return 0, ""
}
