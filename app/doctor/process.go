package doctor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"leasehold/admin"
	"leasehold/config"
	"leasehold/internal/human"
	"leasehold/store"
	"leasehold/store/sqlite"
)

// checkProcess looks for who runs here, and whether he answers.
func checkProcess(ctx context.Context, x *Patient) (all []Finding) {
	socket := string(x.Config.Admin.Socket)
	var err error
	x.node, err = x.Status(ctx, socket)
	var owner sqlite.Owner
	held := false
	if url, err := x.Config.StoreURL(x.Resolve); err == nil {
		if path, err := store.Path(url); err == nil {
			owner, held = sqlite.Holder(path)
		}
	}
	x.running = err == nil && x.node.Node != nil
	all = append(all, checkAnswer(socket, err, owner, held, x.node))
	all = append(all, checkCopies(ctx, socket)...)
	if x.running {
		all = append(all, checkVersion(x.Version, x.node.Version))
	}
	installations, limit := len(x.Config.Installations), openFiles()
	if x.running {
		installations = max(installations, len(x.node.Installations))
		limit = openFilesOf(x.node.Node.PID)
	}
	return append(all, checkOpenFiles(limit, filesNeeded(installations, x.Config.Delivery)))
}

// checkAnswer compares who has the store with who answers on the socket.
func checkAnswer(socket string, err error, owner sqlite.Owner, held bool, o admin.Overview) Finding {
	switch {
	case err == nil && o.Node != nil:
		return Finding{"process", OK, fmt.Sprintf("process %d runs as %s and answers on %s", o.Node.PID, o.Node.Name, socket), ""}
	case err == nil && o.Holder != "": // a socket of a passive one that took the configured name
		return Finding{"process", Warn, "the process on " + socket + " waits to take over from " + o.Holder, "leave one of the two; see leasehold status"}
	case err != nil && !errors.Is(err, admin.ErrNoAnswer):
		return Finding{"process", Fail, err.Error(), "see what it says"}
	case held:
		return Finding{
			"process", Fail, fmt.Sprintf("%s has the store, and nothing answers on %s", owner, socket),
			"give both the same config (admin.socket is where they meet); when that process is stuck, end it and start it again",
		}
	}
	return Finding{"process", OK, "nothing runs here; leasehold run starts it", ""}
}

// checkCopies looks for processes that wait for the store.
func checkCopies(ctx context.Context, socket string) (all []Finding) {
	ext := filepath.Ext(socket)
	found, err := filepath.Glob(strings.TrimSuffix(socket, ext) + ".*" + ext)
	if err != nil {
		return nil // a path that reads as a pattern: nothing to find
	}
	for _, path := range found {
		if admin.Reach(ctx, path) == nil {
			all = append(all, Finding{"process", Warn, "another copy waits to take over, on " + path, "stop the one that is not wanted: two services, or a shell that was forgotten"})
		}
	}
	return all
}

// checkVersion compares this program with the one that runs.
func checkVersion(own, other admin.Version) Finding {
	words := func(v admin.Version) string {
		if v.Commit == "" {
			return v.Version
		}
		return v.Version + " (" + human.Short(v.Commit, 12) + ")"
	}
	if own.Version != other.Version || own.Commit != other.Commit {
		return Finding{"version", Warn, fmt.Sprintf("this is %s, and %s runs", words(own), words(other)), "restart leasehold to run this one; or use the other one's command"}
	}
	return Finding{"version", OK, words(own), ""}
}

// ownFiles are the files that a node has open beside its connections: the store's
// pools, its log and index, the sockets, and what DNS and TLS open for a moment.
const ownFiles = 64

// filesNeeded is what a node opens at most: a connection for each installation, and
// one more while it is replaced; and one for each delivery in flight.
func filesNeeded(installations int, d config.Delivery) int64 {
	return int64(2*installations + d.Concurrency + ownFiles)
}

// checkOpenFiles compares the limit with that; 0 = it is not known.
func checkOpenFiles(limit, need int64) Finding {
	switch {
	case limit == 0:
		return Finding{"open files", OK, "no limit is known", ""}
	case limit < need:
		return Finding{
			"open files", Fail, fmt.Sprintf("%d may be open, and up to %d are needed: connections will fail", limit, need),
			fmt.Sprintf("raise it: LimitNOFILE=%d in the systemd unit, or ulimit -n %d before leasehold run", 2*need, 2*need),
		}
	}
	return Finding{"open files", OK, fmt.Sprintf("%d may be open, up to %d are needed", limit, need), ""}
}
