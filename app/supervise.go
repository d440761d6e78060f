package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"leasehold/admin"
	"leasehold/app/backlog"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/delivery"
	"leasehold/engine"
	"leasehold/internal/fault"
	"leasehold/internal/identity"
	"leasehold/store"
)

// reconcile makes the store's rows of the file those that the file has now. unready
// are those that cannot be built yet, with the reason.
func (p *program) reconcile(ctx context.Context, c *config.Config, s store.Store, types *channel.Types, log *slog.Logger) (unready map[string]error, err error) {
	rows, unready, err := wanted(c, types, fingerprintKey(c))
	if err != nil {
		return nil, err
	}
	added, changed, removed, err := reconciled(applied(ctx, s, rows, log))
	if err != nil {
		return nil, err
	}
	if len(added)+len(changed)+len(removed) > 0 {
		log.InfoContext(ctx, "installations applied", "added", added, "changed", changed, "removed", removed)
	}
	for id, err := range unready {
		log.WarnContext(ctx, "installation cannot be built yet", "installation", id, "error", err)
	}
	return unready, nil
}

// applied makes the store's rows of the file rows. In a store that nodes share it
// does so once, while there is none: each node has a file of its own, and the one
// that starts last must not have its way. What the file has beside the store is said.
func applied(ctx context.Context, s store.Store, rows []admin.Installation, log *slog.Logger) (added, changed, removed []string, err error) {
	if s.Sole() {
		return s.Reconcile(ctx, rows)
	}
	added, seeded, err := s.Seed(ctx, rows)
	if err != nil || seeded {
		return added, nil, nil, err
	}
	have, err := s.Installations(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if d := unlike(rows, have); d.any() {
		log.WarnContext(ctx, "installations of the file were not applied", "only_in_file", d.Added, "different", d.Changed,
			"next_step", "the store has had its own since the first start; change them with leasehold installations put")
	}
	return nil, nil, nil, nil
}

// reconciled is what a Reconcile answered. That the file and the store's own rows
// exclude each other is the file's fault: a restart mends nothing.
func reconciled(added, changed, removed []string, err error) ([]string, []string, []string, error) {
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.Invalid) {
		err = fault.Errorf(fault.Invalid, "%w; see leasehold installations list", err)
	}
	return added, changed, removed, err
}

// settingsOf are what a dispatcher delivers by.
func settingsOf(c *config.Config, targets []delivery.Target) delivery.Settings {
	return delivery.Settings{
		Node: delivery.Node{Name: c.Node.Name, Labels: c.Node.Labels}, Total: c.Delivery.Concurrency, Targets: targets, Default: c.Delivery.Targets,
	}
}

// dispatcher makes what delivers.
func (p *program) dispatcher(c *config.Config, n *node, types *channel.Types, routes *routes, resolve channel.Resolver, log *slog.Logger) (*delivery.Dispatcher, error) {
	var observer delivery.Observer
	if n.herald != nil {
		observer = listener{n.herald, n.gone}
	}
	d, err := delivery.New(n.store, p.withKeys(targetsOf(c, n.poster(), resolve)), delivery.Options{
		Clock: n.believed(), Observer: observer,
		Node: delivery.Node{Name: c.Node.Name, Labels: c.Node.Labels}, Agent: "leasehold/" + buildVersion().Version, Log: log,
		Total: c.Delivery.Concurrency, Default: c.Delivery.Targets, Route: routes.of, Asks: routes.asks, Describe: routes.describe,
		Breaker: n.loops, Programs: p.programs, Environ: p.Env, Replied: n.mailer.Wake,
		Can: func(channelType string) (channel.Capabilities, bool) {
			spec, known := types.Lookup(channelType)
			return spec.Can, known
		},
	})
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err)
	}
	return d, nil
}

func timingOf(c *config.Config) engine.Timing {
	return engine.Timing{
		TTL: c.Lease.TTL.Std(), RenewEvery: c.Lease.RenewEvery.Std(), AttemptTimeout: c.Lease.AttemptTimeout.Std(), Margin: c.Lease.Margin.Std(),
	}
}

// supervisor makes what holds the connections.
func (p *program) supervisor(c *config.Config, n *node, self *identity.Identity, types *channel.Types, resolve channel.Resolver, log *slog.Logger) (*engine.Supervisor, error) {
	host, err := identity.Host(string(c.Node.DataDir))
	if err != nil {
		return nil, err
	}
	proxy, err := p.proxyFor(c.Connect, resolve)
	if err != nil {
		return nil, err
	}
	authorities, err := authorities(c.Connect.CAFile)
	if err != nil {
		return nil, err
	}
	n.meter.next = n.herald
	counted := metered{backlog.New(n.store, n.config.Load, n.dispatcher.Wake, n.drops, log), n.meter}
	v, err := engine.New(counted, types, &grantee{n.router, n.mailer}, engine.Options{
		Instance: self.Instance, Previous: self.Previous, Host: host, Name: c.Node.Name, Version: buildVersion().Version, Weight: c.Node.Weight,
		Timing:       timingOf(c),
		Seal:         n.followUps.seal,
		Connect:      engine.Connect{PerTypeRate: c.Connect.PerTypeRate, InFlight: c.Connect.InFlight, Proxy: proxy, RootCAs: authorities},
		DrainTimeout: c.Node.DrainTimeout.Std(), Log: log, Observer: n.meter,
		OnSession: func(id string) error { return self.SetSession(id, buildVersion().Version) },
	})
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, fmt.Errorf("start the engine: %w", err))
	}
	return v, nil
}

// routes knows which targets each installation names, and what a target may ask of
// it. It reads them again once somebody has changed an installation: events ask far
// more often.
type routes struct {
	store   admin.Store
	changed <-chan struct{}
	log     *slog.Logger

	mu    sync.Mutex // guards table
	table map[string]route
}

type route struct {
	targets []string
	typ     string
	labels  map[string]string
	sync    bool // its interactions wait for the program
}

// routeWithin bounds the reading of a table: an event waits for it.
const routeWithin = 3 * time.Second

// of returns the targets that an installation names; nil: it names none, empty: its
// events go nowhere.
func (r *routes) of(installation string) []string { return r.route(installation).targets }

// describe returns an installation's channel type and labels.
func (r *routes) describe(installation string) (string, map[string]string) {
	to := r.route(installation)
	return to.typ, to.labels
}

// asks reports whether the program answers the interactions of an installation itself.
func (r *routes) asks(installation string) bool { return r.route(installation).sync }

func (r *routes) route(installation string) route {
	r.mu.Lock()
	defer r.mu.Unlock()
	stale := r.table == nil
	select {
	case <-r.changed:
		stale = true
	default:
	}
	if stale {
		r.read()
	}
	return r.table[installation]
}

// read reads the table. When the store does not answer, what was known stays: an
// event must not get lost for that.
func (r *routes) read() {
	ctx, cancel := context.WithTimeout(context.Background(), routeWithin)
	defer cancel()
	all, err := r.store.Installations(ctx)
	if err != nil {
		r.log.Warn("targets of installations unreadable", "error", err)
		return
	}
	r.table = make(map[string]route, len(all))
	for _, i := range all {
		r.table[i.ID] = route{targets: i.Targets, typ: i.Type, labels: i.Labels, sync: i.Interactions == admin.Sync}
	}
}

// router is the dispatcher as the engine's holder, where events may go nowhere:
// targets = [], of an installation or of [delivery].
type router struct {
	*delivery.Dispatcher
	routes *routes
	silent atomic.Bool // those that name no target go nowhere
}

func newRouter(c *config.Config, d *delivery.Dispatcher, routes *routes) *router {
	r := &router{Dispatcher: d, routes: routes}
	r.follow(c)
	return r
}

// follow makes c what the router goes by.
func (r *router) follow(c *config.Config) {
	r.silent.Store(c.Delivery.Targets != nil && len(c.Delivery.Targets) == 0)
}

var _ engine.Holder = (*router)(nil)

// Targets implements engine.Holder.
func (r *router) Targets(t channel.Term, e *channel.Event) []string {
	id := e.Installation
	if id == "" {
		id = t.Installation
	}
	if named := r.routes.of(id); named == nil && r.silent.Load() || named != nil && len(named) == 0 {
		return nil
	}
	return r.Dispatcher.Targets(t, e)
}
