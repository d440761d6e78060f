package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/app/backlog"
	"leasehold/app/herald"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/internal/clockgate"
	"leasehold/internal/identity"
)

func (p *program) runCommand() *cobra.Command {
	var demo bool
	var f runFlags
	c := &cobra.Command{
		Use: "run [TYPE [-- COMMAND …]]", Short: "Run: hold the connections, deliver what they hear",
		Long: `Run what the config says or, with a TYPE, one bot for one program without a file: its
keys by --set, its secrets by the environment (MQTT_PASSWORD for password of mqtt).
Its data is kept in a folder of its own under the user's data folder, so that the
next run of the same type and id loses nothing.`,
		Args: runArgs,
		Example: `  leasehold run --demo          see it work in ten seconds
  leasehold run --config leasehold.toml
  leasehold run websocket --to http://localhost:3000/events --set url=wss://example.com/events
  leasehold run mqtt --set url=mqtts://broker.example.com --set topics=plant/# --set username=me
  leasehold run exec --to http://localhost:3000/events -- python3 bot.py`,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case demo && (len(args) > 0 || f.said()):
				return usage("--demo takes nothing else; see leasehold run --help")
			case demo:
				return p.demo(c.Context())
			case len(args) > 0:
				return p.runType(c.Context(), args[0], f, args[1:])
			case f.said():
				return usage("--to, --set and --id are for a bot without a file: name its type, such as leasehold run websocket; see leasehold types")
			}
			p.look = config.LookAt(p.source(), nil) // first: what changes while they are read is seen
			cfg, err := p.load()
			if err != nil {
				return err
			}
			return p.run(c.Context(), cfg, p.logger(cfg.Log, p.Stderr))
		},
		ValidArgsFunction: p.completeType,
	}
	flags := c.Flags()
	flags.BoolVar(&demo, "demo", false, "run a fake platform, one installation and a receiver, in a temporary folder")
	flags.BoolVar(&p.newStore, "new-store", false, "begin an empty store although this data folder had one")
	flags.StringVar(&f.to, "to", "", "with a TYPE: the `URL` of the program; - or nothing writes the events to the log")
	flags.StringVar(&f.id, "id", "", "with a TYPE: the installation's `id`; its type, when left out")
	flags.StringArrayVar(&f.sets, "set", nil, "with a TYPE: one of its keys, `key=value`; may be repeated, for a list, too")
	return c
}

// runArgs takes a channel type, and a command behind --.
func runArgs(c *cobra.Command, args []string) error {
	typed := len(args)
	if dash := c.ArgsLenAtDash(); dash >= 0 {
		typed = dash
	}
	if typed > 1 || typed == 0 && len(args) > 0 {
		return usage("leasehold run takes a TYPE at most (got %d arguments); see leasehold run --help", typed)
	}
	return filled(c, args)
}

// stopSlack is what a shutdown may take beyond the drain: closing sockets under
// channels that do not listen (2 s), store calls under way (3 s), the last
// answers of the local socket (2 s), the checkpoint.
const stopSlack = 15 * time.Second

// run runs a node until ctx ends, and bounds its shutdown: what does not stop is
// left to the end of the process, which then says so and is no success.
func (p *program) run(ctx context.Context, c *config.Config, log *slog.Logger) error {
	hangup := make(chan os.Signal, 1) // or a terminal that closed: no reason to end either
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	p.hangup = hangup
	ended := make(chan error, 1)
	go func() {
		err := p.node(ctx, c, log)
		log.InfoContext(ctx, "stopped")
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	bound := c.Node.DrainTimeout.Std() + stopSlack
	late := time.NewTimer(bound)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-p.again:
		return errors.New("stopped at once by a second signal; what was under way is repeated at the next start")
	case <-late.C:
		return fmt.Errorf("the shutdown did not end within %v; what was under way is repeated at the next start", bound)
	}
}

// node is the program from its data folder to its last connection, in the order
// in which things start. What was started is stopped in reverse, where it stands:
// the socket answers until the drain is over, the store is closed last.
func (p *program) node(ctx context.Context, c *config.Config, log *slog.Logger) (err error) {
	n := &node{started: time.Now(), name: c.Node.Name, log: log}
	n.config.Store(c)
	n.meter = newMeter()
	n.herald = herald.New(p.redact.String, log)
	n.drops = backlog.NewDrops(n.herald.GaveWay, log)
	resolve := p.resolver(log)
	types, err := channel.NewTypes(resolve, p.Types...)
	if err != nil {
		return err
	}
	if err := p.startable(c, resolve); err != nil {
		return err
	}
	warnOfCircles(c, log)

	if err := makeDataDir(c); err != nil {
		return err
	}
	release, err := p.claimFolder(c, resolve)
	if err != nil {
		return err
	}
	defer closing(&err, release)
	if n.store, err = p.claimStore(ctx, c, types, resolve, log); err != nil {
		return unlessStopped(ctx, err)
	}
	defer closing(&err, n.store.Close)
	v := p.useVault(c, n.store, !n.store.Sole(), resolve)
	if _, err := v.Refresh(ctx); err != nil {
		return unlessStopped(ctx, err)
	}
	if err := v.Tidy(); err != nil {
		return err
	}
	claimed := time.Now()
	n.clock = clockgate.New(clockgate.Options{Built: buildTime()})
	self, err := identity.Load(string(c.Node.DataDir))
	if err != nil {
		return err
	}
	n.instance = self.Instance
	unready, err := p.reconcile(ctx, c, n.store, types, log)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	if c, err = p.targets(ctx, c, n.store, log); err != nil {
		return unlessStopped(ctx, err)
	}
	n.config.Store(c)
	if err := p.prepare(ctx, c, log); err != nil {
		return err
	}
	n.gone = newGone(n.store, log)

	routes := &routes{store: n.store, changed: n.store.Watch(ctx), log: log}
	n.followUps = &followUps{vault: v, log: log}
	n.mailer = mailer(ctx, n.store, types, n.followUps, log)
	n.pace.Most, n.loops = c.Delivery.LoopLimit, herald.Breaker(c, n.herald, log)
	if n.dispatcher, err = p.dispatcher(c, n, types, routes, resolve, log); err != nil {
		return err
	}
	n.herald.Announce, n.herald.About = n.dispatcher.Announce, routes.describe
	n.router = newRouter(c, n.dispatcher, routes)
	if n.supervisor, err = p.supervisor(c, n, self, types, resolve, log); err != nil {
		return err
	}
	n.reloader = newReloader(p, n, types, resolve, unready, log)
	tasks, err := chores(n.config.Load, n.store, n, log)
	if err != nil {
		return err
	}
	n.tasks = tasks

	socket, err := admin.Listen(ctx, string(c.Admin.Socket))
	if err != nil {
		return err
	}
	if n.ports, err = listeners(ctx, c.Admin); err != nil {
		return err
	}
	if err := p.firstToken(ctx, c, n.store); err != nil {
		return err
	}
	api := admin.New(p.answers(n.config.Load, admin.Options{Store: n.store, Types: types, Mode: admin.Running, Process: n, Metrics: n.Metrics, Reloader: n.reloader, Live: live{n.dispatcher, n.reloader}, Tasks: tasks, Vault: &vaultOf{v, n.config.Load, n.reloader.rekey}, Shared: !n.store.Sole(), Backups: backupsOf(n.store, v, n.config.Load), Log: log}))
	n.pinger = newPinger(n.config.Load, config.Resolver(resolve), api.Overview, p.redact)
	answering := start(ctx, func(ctx context.Context) error { return admin.Serve(ctx, socket, api, log) })
	defer closing(&err, answering.stop)
	for _, l := range n.ports {
		open := start(ctx, func(ctx context.Context) error {
			return admin.ServeTCP(ctx, l, admin.NewGate(api, gateHosts(c.Admin)...), log)
		})
		defer closing(&err, open.stop)
		log.InfoContext(ctx, "listening", "address", l.Addr().String(), "tls", c.Admin.TLSCert != "")
	}
	delivering := start(ctx, n.dispatcher.Run)
	defer closing(&err, delivering.stop)
	sending := start(ctx, n.mailer.Run)
	defer closing(&err, sending.stop)
	noting := start(ctx, n.gone.Run)
	defer closing(&err, noting.stop)
	following := start(ctx, n.reloader.followStore)
	defer closing(&err, following.stop)
	telling := start(ctx, n.herald.Run)
	defer closing(&err, telling.stop)
	watching := start(ctx, func(ctx context.Context) error { return n.clock.Run(ctx, n.clockChanged) })
	defer closing(&err, watching.stop)
	counting := start(ctx, n.drops.Run)
	defer closing(&err, counting.stop)
	n.herald.Started(buildVersion().Version, self.Version)
	holding := start(ctx, n.supervisor.Run)
	defer closing(&err, holding.stop)
	tending := start(ctx, tasks.Run)
	defer closing(&err, tending.stop)
	heeding := start(ctx, n.reloader.heed)
	defer closing(&err, heeding.stop)
	rekeying := start(ctx, n.reloader.heedVault)
	defer closing(&err, rekeying.stop)
	replaying := start(ctx, n.heedReplays)
	defer closing(&err, replaying.stop)

	n.awaitSession(ctx, holding.ended)
	log.InfoContext(ctx, "ready", "node", n.name, "instance", n.instance, "socket", string(c.Admin.Socket), "took_ms", time.Since(claimed).Milliseconds())
	var failed error
	select { // one that has ended by itself says why when it is stopped
	case <-ctx.Done():
	case <-holding.ended:
		failed = holding.err
	case <-answering.ended:
		failed = answering.err
	}
	n.herald.Stopping(buildVersion().Version, failed)
	return nil
}
