// Package budget bounds the bytes that may wait for something slow.
package budget

import "sync"

// Budget is a number of bytes of which parts are taken and given back. One part
// may always be taken, so that one larger than the whole passes.
type Budget struct {
	limit int
	freed chan struct{} // holds one: something was given back

	mu   sync.Mutex // guards used
	used int
}

// New makes a Budget of limit bytes.
func New(limit int) *Budget {
	return &Budget{limit: limit, freed: make(chan struct{}, 1)}
}

// Take waits for n bytes; false means that done was closed first. Only one caller
// may take at a time.
func (b *Budget) Take(n int, done <-chan struct{}) bool {
	for !b.fits(n) {
		select {
		case <-b.freed:
		case <-done:
			return false
		}
	}
	return true
}

func (b *Budget) fits(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used > 0 && b.used+n > b.limit {
		return false
	}
	b.used += n
	return true
}

// Give gives n bytes back.
func (b *Budget) Give(n int) {
	b.mu.Lock()
	b.used -= n
	b.mu.Unlock()
	select {
	case b.freed <- struct{}{}:
	default:
	}
}
