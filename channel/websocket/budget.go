package websocket

import "sync"

// budget bounds the bytes that wait for the disk. One event may always wait, so
// that one larger than the budget passes.
type budget struct {
	limit int
	freed chan struct{} // holds one: something was given back

	mu   sync.Mutex // guards used
	used int
}

func newBudget(limit int) *budget {
	return &budget{limit: limit, freed: make(chan struct{}, 1)}
}

// take waits for n bytes; false means that done was closed first. Only one caller
// may take at a time.
func (b *budget) take(n int, done <-chan struct{}) bool {
	for !b.fits(n) {
		select {
		case <-b.freed:
		case <-done:
			return false
		}
	}
	return true
}

func (b *budget) fits(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used > 0 && b.used+n > b.limit {
		return false
	}
	b.used += n
	return true
}

func (b *budget) give(n int) {
	b.mu.Lock()
	b.used -= n
	b.mu.Unlock()
	select {
	case b.freed <- struct{}{}:
	default:
	}
}
