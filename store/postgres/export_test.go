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
