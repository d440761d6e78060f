package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"leasehold/internal/human"
	"leasehold/store/sqlite"
)

// checkDataDir looks at the data folder itself.
func checkDataDir(dir string) []Finding {
	if dir == "" {
		return []Finding{{"data folder", Fail, "none is known here", "set node.data_dir, or use --data-dir FOLDER"}}
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{{"data folder", OK, dir + " is not there yet; the first start makes it", ""}}
	case err != nil:
		return []Finding{{"data folder", Fail, err.Error(), "use the user that leasehold runs as, or root"}}
	case !info.IsDir():
		return []Finding{{"data folder", Fail, dir + " is not a folder", "move it away, or set node.data_dir"}}
	}
	if all := checkRights(dir, info); len(all) > 0 {
		return all
	}
	return []Finding{{"data folder", OK, dir, ""}}
}

// checkFileSystem looks at what the database is on. forced: the config allows a
// network.
func checkFileSystem(p sqlite.Place, forced bool) Finding {
	switch {
	case p.Network && forced:
		return Finding{
			"file system", Warn, fmt.Sprintf("%s is on %s, as store.force_network_fs allows: locks may lie there, and two processes run one installation", p.Path, p.FileSystem),
			"move node.data_dir to a local disk",
		}
	case p.Network:
		return Finding{"file system", Fail, fmt.Sprintf("%s is on %s, where a database can be damaged", p.Path, p.FileSystem), "move node.data_dir to a local disk"}
	case p.Volatile && p.FileSystem == "overlay":
		return Finding{"file system", Warn, p.Path + " is on overlay, a container's own layer most often: it is lost with the container", "mount a volume, and set node.data_dir to it"}
	case p.Volatile:
		return Finding{"file system", Warn, fmt.Sprintf("%s is on %s: it is lost when the machine restarts", p.Path, p.FileSystem), "move node.data_dir to a disk"}
	}
	return Finding{"file system", OK, "fit for a database", ""}
}

// checkDisk looks at the room that is left.
func checkDisk(p sqlite.Place) Finding {
	room := human.Bytes(p.Free) + " free"
	if p.Nodes >= 0 {
		room += fmt.Sprintf(", room for %d files", p.Nodes)
	}
	const next = "free some space on it: du -xh --max-depth=2 / | sort -h shows where it is"
	without := ""
	if p.NoReserve {
		without = "; there is no reserve: once it is full, a sweep and leasehold deliveries drop have no room either"
	}
	switch {
	case p.Short():
		return Finding{"disk", Fail, "full, or nearly so (" + room + "): no event is accepted without room" + without, next}
	case p.Low():
		return Finding{"disk", Warn, "nearly full (" + room + ")" + without, next}
	case p.ReserveLacks > 0:
		return Finding{"disk", Warn, room + "; the reserve for a full disk has been given up, or there was never room for it", "free some space: upkeep makes it again, within the hour, or at once with leasehold tasks run upkeep"}
	case p.NoReserve:
		return Finding{"disk", Warn, room + without, "give the data folder a volume of 64 MB or more, on which upkeep makes one"}
	}
	return Finding{"disk", OK, room, ""}
}

// checkLeftovers looks for what killed processes left behind.
func checkLeftovers(p sqlite.Place, held bool) []Finding {
	if len(p.Parts) == 0 || held { // one may be at work
		return nil
	}
	slices.Sort(p.Parts)
	return []Finding{{"leftovers", Warn, fmt.Sprintf("%d files of restores that were killed, such as %s", len(p.Parts), p.Parts[0]), "the next start removes them"}}
}
