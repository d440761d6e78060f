package sqlite

import (
	"errors"
	"reflect"
	"unsafe"

	sqlitedriver "modernc.org/sqlite"
)

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

// driverError is an error of the driver with a code, which it lets nobody else
// make.
func driverError(code int) error {
	e := &sqlitedriver.Error{}
	f := reflect.ValueOf(e).Elem().FieldByName("code")
	reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().SetInt(int64(code))
	return e
}
