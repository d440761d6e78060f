package postgres

import "errors"

// ErrInjected is what a commit broken by FailNext answers.
var ErrInjected = errors.New("injected failure")

// FailNext breaks the next commit of s: before it takes effect, or after.
func FailNext(s *Store, persisted bool) {
	hook := func(committed bool) error {
		if committed != persisted {
			return nil
		}
		s.hook.Store(nil)
		return ErrInjected
	}
	s.hook.Store(&hook)
}

// Queued is how many callers' parts wait for the committer of a lease.
func Queued(s *Store, lease string) int { return len(s.writer(lease).queue) }

// SameWriter reports whether two leases have the same committer.
func SameWriter(s *Store, a, b string) bool { return s.writer(a) == s.writer(b) }
