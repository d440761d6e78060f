package app

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/internal/fault"
	"leasehold/internal/identity"
	"leasehold/internal/loop"
	"leasehold/internal/vault"
	"leasehold/store"
	"leasehold/store/sqlite"
)

// need is what a command wants of whoever answers it.
type need int

const (
	reading need = iota // the store will do
	writing             // the store will do, under its lock; it is made when there is none
	copying             // the store will do, under its lock; there must be one
	running             // only the running program can tell
)

// reach calls do with a client of the running program or, when nothing runs, of
// the same handlers in this process. Its errors are the command's.
func (p *program) reach(ctx context.Context, n need, do func(context.Context, *admin.Client) error) error {
	if p.server != "" {
		return p.overTCP(ctx, n, do)
	}
	c, err := p.load()
	if err != nil {
		return p.reachDespite(ctx, err, do)
	}
	socket := string(c.Admin.Socket)
	switch err := ask(ctx, socket, do); {
	case err == nil:
		return nil
	case !errors.Is(err, admin.ErrNoAnswer):
		return err
	}
	b, err := p.box(c)
	if err != nil {
		return err
	}
	switch {
	case b.up(ctx, socket):
		return overSocket(ctx, socket, do)
	case n == running && b.held:
		return fault.Errorf(fault.Internal, "%s holds the store and does not answer on %s; restart it", b.owner.String(), socket)
	case n == running:
		return notRunning(c, "nothing answers on "+socket)
	}
	return asUsage(p.inProcess(ctx, b, n, do))
}

// reachDespite asks the program that runs on an earlier content of files that are
// wrong now. That it is the one of these files, and not a neighbour that answers
// where they seem to say, it is asked first. faults are the command's error
// otherwise.
func (p *program) reachDespite(ctx context.Context, faults error, do func(context.Context, *admin.Client) error) error {
	c := config.Salvage(p.source())
	if list, ok := errors.AsType[config.Faults](faults); ok && (c == nil || !c.OwnDataDir) {
		faults = append(list, config.Fault{Message: elsewhere})
	}
	if c == nil || c.Main() == "" || admin.Reach(ctx, string(c.Admin.Socket)) != nil {
		return faults
	}
	return overSocket(ctx, string(c.Admin.Socket), func(ctx context.Context, a *admin.Client) error {
		o, err := a.Status(ctx)
		if err != nil || !reads(o, c) {
			return faults
		}
		return do(ctx, a)
	})
}

// ask is overSocket when somebody is there. One that ends before it answers, as a
// process that is just being killed does, is not: the error has admin.ErrNoAnswer
// in it.
func ask(ctx context.Context, socket string, do func(context.Context, *admin.Client) error) error {
	if err := admin.Reach(ctx, socket); err != nil {
		return err
	}
	return overSocket(ctx, socket, do)
}

func overSocket(ctx context.Context, socket string, do func(context.Context, *admin.Client) error) error {
	client := admin.NewClient(admin.Socket(socket))
	defer client.Close()
	return asUsage(do(ctx, client))
}

// startPatience is how long a program that has the store may take until it
// answers: it is starting, most often, which takes a fraction of that.
const startPatience = 2 * time.Second

// up waits, while somebody holds the store, until somebody answers on the socket;
// false: nobody does in time, or nobody holds the store any more.
func (b *box) up(ctx context.Context, socket string) bool {
	for deadline := time.Now().Add(startPatience); b.held && time.Now().Before(deadline); {
		if loop.Sleep(ctx, 50*time.Millisecond) != nil {
			return false
		}
		if admin.Reach(ctx, socket) == nil {
			return true
		}
		b.owner, b.held = sqlite.Holder(b.path)
	}
	return false
}

// elsewhere is for who asks in the default folder, where what runs may have one of
// its own: the file that named it is empty now, or was never this one.
const elsewhere = "if it runs with another data folder, name it: --data-dir FOLDER"

func notRunning(c *config.Config, why string) error {
	text := why + ": leasehold is not running; start it with leasehold run"
	if !c.OwnDataDir {
		text += "; " + elsewhere
	}
	return &exitError{fault.ExitNotRunning, errors.New(text)}
}

// box is what a command finds where nothing answers: a config, and the store that
// it names.
type box struct {
	config *config.Config
	log    *slog.Logger
	types  *channel.Types
	url    string // of the store
	path   string // of its file; "" = it is a server's
	owner  sqlite.Owner
	held   bool // by owner
}

func (p *program) box(c *config.Config) (*box, error) {
	b := &box{config: c, log: p.logger(c.Log, p.Stderr)}
	resolve := p.resolver(b.log)
	var err error
	if b.types, err = channel.NewTypes(resolve, p.Types...); err != nil {
		return nil, err
	}
	if b.url, err = c.StoreURL(config.Resolver(resolve)); err != nil {
		return nil, fault.Wrap(fault.Invalid, err)
	}
	if store.Shared(b.url) {
		return b, nil
	}
	if b.path, err = store.Path(b.url); err != nil {
		return nil, err
	}
	b.owner, b.held = sqlite.Holder(b.path)
	return b, nil
}

// inProcess answers from the store itself: for writing under the same lock that a
// running program holds, for reading beside whoever may hold it.
func (p *program) inProcess(ctx context.Context, b *box, n need, do func(context.Context, *admin.Client) error) (err error) {
	c, log, url, path := b.config, b.log, b.url, b.path
	o := admin.Options{Types: b.types, Mode: admin.Stopped, Shared: store.Shared(url), Log: log}
	if b.held {
		o.Mode, o.Holder = admin.Unreachable, b.owner.String()
	}
	switch {
	case n != reading && o.Mode == admin.Unreachable:
		return fault.Errorf(fault.Busy, "%s holds the store and does not answer on %s; wait until it is up, or stop it", o.Holder, c.Admin.Socket)
	case n == copying && store.Shared(url):
		return fault.Errorf(fault.Invalid, "the store is a server's, which has its own tools for that; see pg_dump")
	case n == copying && absent(path):
		return notRunning(c, "there is no store "+path+" yet")
	case n != reading:
		if err := makeDataDir(c); err != nil {
			return err
		}
		s, err := store.Open(ctx, url, p.storeOptions(c, log))
		if err != nil {
			return err
		}
		defer closing(&err, s.Close)
		tasks, err := chores(fixed(c), s, nil, log)
		if err != nil {
			return err
		}
		v := p.useVault(c, s, store.Shared(url), p.resolver(log))
		o.Store, o.Tasks, o.Backups = s, once{tasks}, backupsOf(s, v, fixed(c))
		o.Vault = &vaultOf{v, fixed(c), nil}
	default:
		r, err := p.openToRead(ctx, c, url, log)
		if fault.Is(err, fault.NotFound) {
			return notRunning(c, err.Error())
		}
		if err != nil {
			return err
		}
		defer closing(&err, r.Close)
		tasks, err := chores(fixed(c), nil, nil, log) // for their names: a reader runs none
		if err != nil {
			return err
		}
		o.Store, o.Tasks = r, once{tasks}
		o.Vault = &vaultOf{p.useVault(c, r, store.Shared(url), p.resolver(log)), fixed(c), nil}
	}
	client := admin.NewClient(admin.InProcess(admin.New(p.answers(fixed(c), o))))
	defer client.Close()
	return do(ctx, client)
}

// reader is a store that is only read.
type reader interface {
	admin.Store
	vault.Store
	Close() error
}

// openToRead opens the store for reading, beside whoever may hold it. fault.NotFound: there
// is none.
func (p *program) openToRead(ctx context.Context, c *config.Config, url string, log *slog.Logger) (reader, error) {
	if store.Shared(url) {
		o := p.storeOptions(c, log)
		o.Existing = true
		return store.Open(ctx, url, o)
	}
	path, err := store.Path(url)
	if err != nil {
		return nil, err
	}
	if absent(path) {
		return nil, fault.Errorf(fault.NotFound, "there is no store %s yet", path)
	}
	r, err := sqlite.OpenReader(ctx, path, sqlite.Options{ForceNetworkFS: c.Store.ForceNetworkFS})
	if err != nil {
		return nil, err
	}
	return r, nil
}

func absent(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// once runs a task of a group that does not run.
type once struct{ *loop.Group }

func (o once) Trigger(ctx context.Context, name string) error { return o.Once(ctx, name) }

// fingerprintKey keys the fingerprints of configs with what the data folder
// keeps for that: opening the store wrote it there, the store's own if several nodes
// share it.
func fingerprintKey(c *config.Config) []byte {
	id, err := identity.Load(string(c.Node.DataDir))
	if err != nil {
		return nil // node reads it too, and says what is wrong
	}
	return id.FingerprintKey()
}

// closing joins the error of a close to *err, for a defer.
func closing(err *error, f func() error) { *err = errors.Join(*err, f()) }

// unlessStopped is nil for an error that only says that we were asked to stop.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}
