package admin

import "leasehold/internal/fault"

// StoreStep is what a person does about a store that does not work, by the kind of
// its error; "" where it helps itself, or the error is not the store's.
func StoreStep(err error) string {
	switch fault.Of(err) {
	case fault.Full:
		return "free space on the disk of the data folder; it goes on by itself"
	case fault.ReadOnly:
		return "make the data folder writable again; it goes on by itself"
	case fault.Corrupt:
		return "stop leasehold and restore a backup: leasehold restore --help"
	case fault.Gone:
		return "put the database file back or restore a backup, then restart leasehold"
	case fault.Backlog:
		return "start the program behind the target that is down, or raise delivery.backlog_max; it goes on by itself"
	case fault.Newer:
		return "run the newer version that wrote it"
	default:
		return ""
	}
}
