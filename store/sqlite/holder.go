package sqlite

import "errors"

// Holder tells who holds the database at path; false: nobody does, or it cannot be
// told. It takes the lock for an instant to find out: an Open at that instant sees
// it as held and should look again.
func Holder(path string) (Owner, bool) {
	f, err := tryLock(path)
	switch {
	case err == nil:
		_ = f.Close() // nothing was written
		return Owner{}, false
	case errors.Is(err, errLocked):
		return readOwner(path), true
	default:
		return Owner{}, false
	}
}
