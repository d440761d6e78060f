package storecopy

import (
	"strconv"
	"strings"

	"leasehold/internal/fault"
)

// Names is a list of columns, or one table, as both databases write names. as changes
// each, nil = nothing does.
func Names(as func(quoted string) string, names ...string) string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = `"` + n + `"`
		if as != nil {
			all[i] = as(all[i])
		}
	}
	return strings.Join(all, ", ")
}

// Params are the parameters $1 to $n.
func Params(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = "$" + strconv.Itoa(i+1)
	}
	return strings.Join(all, ", ")
}

// NotEmpty is why nothing is copied into a database where a table has rows.
func NotEmpty(name, table string) error {
	return fault.Errorf(fault.Conflict, "the database %s is not empty: its table %s has rows; name one that is, nothing there was changed", name, table)
}

// OfAnother is why nothing is copied into the unfinished copy of another store.
func OfAnother(name string) error {
	return fault.Errorf(fault.Conflict, "the database %s holds an unfinished copy of another store; name an empty one, nothing there was changed", name)
}

// Taken is why a copy stops when another one has begun.
func Taken(name string) error {
	return fault.Errorf(fault.Conflict, "another copy into the database %s has begun, or ended; look for it before you run this again", name)
}

// Unfinished is why no program runs on the target of a copy. It is wrong config, so
// that a service manager does not try again.
func Unfinished(name string) error {
	return fault.Errorf(fault.Invalid, "the database %s is the target of a copy that is not finished: run leasehold store copy again where it ran, or begin with an empty database", name)
}
