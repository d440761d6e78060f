package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"leasehold/config"
	"leasehold/internal/fault"
	"leasehold/internal/human"
	"leasehold/internal/identity"
	"leasehold/store"
	"leasehold/store/sqlite"
)

// checkStore looks at the database, at what is beside it, and at its backups.
func checkStore(ctx context.Context, x *Patient) []Finding {
	url, err := x.Config.StoreURL(x.Resolve)
	if err != nil {
		return []Finding{{"store", Warn, err.Error(), "look whether the service has it: this shell need not"}}
	}
	if store.Shared(url) {
		return []Finding{checkServer(ctx, x, url)}
	}
	if x.path, err = store.Path(url); err != nil {
		return []Finding{{"store", Fail, err.Error(), "set store.url"}}
	}
	if !exists(filepath.Dir(x.path)) {
		return []Finding{{"store", OK, x.path + " is not there yet; the first start makes it", ""}}
	}
	p, err := sqlite.Look(x.path)
	if err != nil {
		return []Finding{{"store", Fail, err.Error(), "use the user that leasehold runs as, or root"}}
	}
	_, held := sqlite.Holder(x.path)
	all := []Finding{checkFileSystem(p, x.Config.Store.ForceNetworkFS), checkDisk(p)}
	all = append(all, checkLeftovers(p, held)...)
	newest := newestBackup(x.Config)
	all = append(all, checkDatabase(ctx, x, p, newest))
	if p.There {
		all = append(all, checkLog(p, held), checkBackups(x.Config.Tasks.Backup, newest, time.Now()))
	}
	return all
}

// checkServer opens a database that nodes share, as a start does.
func checkServer(ctx context.Context, x *Patient, url string) Finding {
	s, err := store.Open(ctx, url, store.Options{PollOnly: x.Config.Store.PollOnly, Existing: true})
	switch {
	case err == nil:
		defer func() { _ = s.Close() }() // it only looked
		nodes, err := s.Nodes(ctx)
		if err != nil {
			return Finding{"store", Fail, err.Error(), "see what it says"}
		}
		return Finding{"store", OK, fmt.Sprintf("%s answers, %d nodes are up", store.Shown(url), len(nodes)), ""}
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound): // an older schema, or none yet
		return Finding{"store", Warn, err.Error(), "start leasehold, which brings it up to date"}
	}
	return Finding{"store", Fail, err.Error(), "see what it says"}
}

// newestBackup is the newest dated backup of this box; nil = there is none.
func newestBackup(c *config.Config) *sqlite.BackupFile {
	all, err := sqlite.OwnBackups(c.BackupsDir(), string(c.Node.DataDir))
	if err != nil || len(all) == 0 || c.BackupsDir() == "" {
		return nil
	}
	return &all[0]
}

// checkDatabase opens it for reading and, when told, reads all of it.
func checkDatabase(ctx context.Context, x *Patient, p sqlite.Place, newest *sqlite.BackupFile) Finding {
	restore := "restore a backup: leasehold restore --replace FILE"
	if newest != nil {
		restore = "stop leasehold, then: leasehold restore --replace " + newest.Path
	}
	if !p.There || p.Bytes == 0 {
		id, err := identity.Load(string(x.Config.Node.DataDir))
		switch {
		case err != nil:
			return Finding{"store", Fail, err.Error(), "see what it says"}
		case id.Store != "":
			return Finding{"store", Fail, "the database " + x.path + " is gone: this node had one", "put it back, or " + restore}
		}
		return Finding{"store", OK, x.path + " is not there yet; the first start makes it", ""}
	}
	r, err := sqlite.OpenReader(ctx, x.path, sqlite.Options{ForceNetworkFS: true}) // the place is another check's
	if err == nil && x.Full {
		err = r.Check(ctx)
	}
	if r != nil {
		err = errors.Join(err, r.Close())
	}
	switch {
	case err == nil && x.Full:
		return Finding{"store", OK, fmt.Sprintf("%s, %s, read as a whole: sound", x.path, human.Bytes(p.Bytes)), ""}
	case err == nil:
		return Finding{"store", OK, fmt.Sprintf("%s, %s; leasehold doctor --full reads all of it", x.path, human.Bytes(p.Bytes)), ""}
	case fault.Is(err, fault.Corrupt):
		return Finding{"store", Fail, err.Error(), restore}
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound): // an older schema, or none yet
		return Finding{"store", Warn, err.Error(), "start leasehold, which brings it up to date"}
	case fault.Is(err, fault.Newer):
		return Finding{"store", Fail, err.Error(), "install the newer version again"}
	}
	return Finding{"store", Fail, err.Error(), "use the user that leasehold runs as, or root"}
}

// longLog is a log that somebody's long reading keeps from being folded in: at work
// it has about four megabytes, and is cut to sixteen.
const longLog = 64 << 20

func checkLog(p sqlite.Place, held bool) Finding {
	switch {
	case p.LogBytes > longLog && held:
		return Finding{"log", Warn, human.Bytes(p.LogBytes) + " are not folded into the database: some program reads it without an end", "fuser " + p.Path + " names those who have it open; then: leasehold tasks run upkeep"}
	case p.LogBytes > longLog:
		return Finding{"log", Warn, human.Bytes(p.LogBytes) + " are not folded into the database", "start leasehold, which folds it in"}
	}
	return Finding{"log", OK, human.Bytes(p.LogBytes) + " beside the database", ""}
}

// lateBackup is how many intervals may pass without a backup before it is said. One
// where nothing changed makes none, which is why it is no failure.
const lateBackup = 3

func checkBackups(b config.Backup, newest *sqlite.BackupFile, now time.Time) Finding {
	const byItself = `set [tasks.backup] every = "24h" or dir, or run leasehold backup yourself`
	every := b.Interval()
	if newest == nil {
		f := Finding{"backups", Warn, "there is none, and none is made by itself", byItself}
		if every > 0 {
			f.Detail, f.NextStep = "there is none yet", "leasehold tasks run backup"
		}
		return f
	}
	age := fmt.Sprintf("the newest is %s, %s", newest.Path, human.Ago(newest.At))
	switch old := now.Sub(newest.At); {
	case every == 0 && old > 7*24*time.Hour:
		return Finding{"backups", Warn, age + ", and none is made by itself", byItself}
	case every > 0 && old > lateBackup*every:
		return Finding{"backups", Warn, age + "; one is due every " + b.Every.String() + " while something changes", "leasehold tasks list says how the last one went"}
	}
	if info, err := os.Stat(newest.Path); err != nil || info.Size() == 0 {
		return Finding{"backups", Fail, newest.Path + " is empty, or cannot be read", "leasehold backup makes another one"}
	}
	return Finding{"backups", OK, age, ""}
}
