package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/delivery"
	"leasehold/internal/fault"
	"leasehold/internal/loop"
)

const (
	// settleFor is how long the files must stay as they are before they are read:
	// longer than whoever writes a file in several pieces pauses between them.
	settleFor = 250 * time.Millisecond
	// settleTries bounds how often that is awaited; then the next look goes on.
	settleTries = 4
	// retryAfter is how often files that are refused are tried again as they are: a
	// secret, or a file that they name, may be there by then.
	retryAfter = 10 * time.Second
	// reconcileWithin bounds the one write to the store. Whoever asked may be gone by
	// then; half of a reload would be worse.
	reconcileWithin = 10 * time.Second
)

// reloader applies the files of the config to a node that runs: all that they say,
// or nothing.
type reloader struct {
	p       *program
	n       *node
	types   *channel.Types
	resolve channel.Resolver
	key     []byte // of fingerprints
	log     *slog.Logger
	state   atomic.Pointer[admin.Configuration]

	mu      sync.Mutex // one reload at a time; guards what follows
	applied *config.Look
	seen    *config.Look // of the latest try, or of a look since that found the same
	tried   time.Time
	told    string            // of what is wrong, in the log
	targets []delivery.Target // as they are in force
	rows    []admin.TargetRow // that they were made of; nil = nobody has looked
	unready map[string]string // installations and targets that lacked something when they were applied
}

var _ admin.Reloader = (*reloader)(nil)

// newReloader makes the reloader of a node. It is an admin.Reloader without files,
// which changes nothing, where the node's config was made by code. unready are the
// installations that could not be built at the start.
func newReloader(p *program, n *node, types *channel.Types, resolve channel.Resolver, unready map[string]error, log *slog.Logger) *reloader {
	c := n.config.Load()
	targets := p.withKeys(targetsOf(c, n.poster(), resolve))
	r := &reloader{
		p: p, n: n, types: types, resolve: resolve, key: fingerprintKey(c), log: log,
		applied: p.look, seen: p.look, unready: lacks(c, unready, targets),
		targets: targets,
	}
	r.state.Store(&admin.Configuration{Files: absolute(c.Files), Applied: time.Now().UTC()})
	return r
}

// chores are the task that looks at secrets, and the one that looks at the files,
// where there are any.
func (r *reloader) chores() []*chore {
	if r == nil {
		return nil
	}
	all := []*chore{{name: "key-reload", every: func(c *config.Config) time.Duration { return c.Tasks.KeyReload.Every.Std() }, do: r.rekeyed}}
	if r.applied == nil {
		return all
	}
	return append(all, &chore{name: "config-reload", every: func(c *config.Config) time.Duration { return c.Tasks.ConfigReload.Every.Std() }, do: r.look})
}

// Configuration implements admin.Reloader.
func (r *reloader) Configuration() admin.Configuration { return *r.state.Load() }

// wish is what a reload is done for.
type wish struct {
	asked bool // by a person, not for a file that was seen to change
	empty bool // by one who says that an emptied file is meant
}

// Reload implements admin.Reloader.
func (r *reloader) Reload(ctx context.Context, allowEmpty bool) (admin.Reloaded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now(ctx, wish{asked: true, empty: allowEmpty})
}

// hangup is a Reload whose answer is the log.
func (r *reloader) hangup(ctx context.Context) {
	if _, err := r.rekeyed(ctx); err != nil {
		r.log.WarnContext(ctx, "keys not taken up", "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.applied == nil {
		return // a terminal that closed, most often: there is nothing to read
	}
	r.told = ""
	done, err := r.now(ctx, wish{asked: true})
	switch {
	case err != nil && !fault.Is(err, fault.Invalid): // those are in the log already
		r.log.ErrorContext(ctx, "config not applied", "error", err)
	case err == nil && idle(done):
		r.log.InfoContext(ctx, "config is as it was")
	}
}

func (r *reloader) now(ctx context.Context, w wish) (admin.Reloaded, error) {
	if r.applied == nil {
		return admin.Reloaded{}, fault.Errorf(fault.Conflict, "this program was started without files; start it with leasehold run to have some")
	}
	return r.try(ctx, w, config.LookAt(r.p.source(), r.seen))
}

// look is the cycle of the task: it applies the files when they have changed. Files
// that are refused are no failure of the task, which goes on looking.
func (r *reloader) look(ctx context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := config.LookAt(r.p.source(), r.seen)
	if now.Same(r.seen) {
		r.seen = now
		if refused := len(r.state.Load().Faults) > 0; !refused || time.Since(r.tried) < retryAfter {
			return "", nil
		}
	} else if now = r.settled(ctx, now); now == nil {
		return "", ctx.Err()
	}
	done, err := r.try(ctx, wish{}, now)
	switch {
	case fault.Is(err, fault.Invalid):
		return "", nil
	case err != nil:
		return "", err
	}
	return reloadedWords(done), nil
}

// settled waits until the files stay as they are; nil: they do not, or ctx ended.
func (r *reloader) settled(ctx context.Context, now *config.Look) *config.Look {
	for range settleTries {
		if loop.Sleep(ctx, settleFor) != nil {
			return nil
		}
		next := config.LookAt(r.p.source(), now)
		if next.Same(now) {
			return next
		}
		now = next
	}
	return nil
}

// try applies the files as they are at the look, and keeps what became of that for
// who asks.
func (r *reloader) try(ctx context.Context, w wish, look *config.Look) (admin.Reloaded, error) {
	r.tried = time.Now()
	p, err := r.plan(ctx, look, w)
	switch {
	case ctx.Err() != nil: // whoever asked is gone, or we stop: nothing was tried
		return admin.Reloaded{}, fmt.Errorf("read the config again: %w", ctx.Err())
	case err != nil:
		r.seen = look
		return admin.Reloaded{}, r.refuse(ctx, err)
	}
	done, err := r.carryOut(ctx, p)
	switch {
	case fault.Is(err, fault.Invalid):
		r.seen = look
		return done, r.refuse(ctx, err)
	case err != nil:
		r.seen = r.applied // nobody knows what the store has of it: the next look tries again
		return done, err
	}
	was := r.state.Load()
	r.applied, r.seen, r.unready, r.told = look, look, p.lacks, ""
	r.state.Store(&admin.Configuration{Files: done.Files, Applied: time.Now().UTC(), Restart: done.Restart})
	if !idle(done) || len(was.Faults) > 0 {
		r.log.LogAttrs(ctx, slog.LevelInfo, "config applied", reloadedAttrs(done)...)
	}
	if len(done.Restart) > 0 && !slices.Equal(done.Restart, was.Restart) {
		r.log.WarnContext(ctx, "config keys wait for a restart", "keys", done.Restart, "next_step", "restart leasehold to apply them")
	}
	return done, nil
}

// refuse keeps why the files are not applied, and returns it as an answer has it.
func (r *reloader) refuse(ctx context.Context, err error) error {
	faulty := faultyOf(err)
	state := *r.state.Load()
	if len(state.Faults) == 0 {
		state.Failed = time.Now().UTC()
	}
	state.Faults = faulty
	r.state.Store(&state)
	if text := faulty.Error(); text != r.told {
		r.told = text
		lines := make([]string, len(faulty))
		for i, f := range faulty {
			lines[i] = f.Text
		}
		r.log.ErrorContext(ctx, "config not applied", "faults", lines, "next_step", "correct it; what ran before runs on")
	}
	return faulty
}

// faultyOf is an error about the files, as an answer has it.
func faultyOf(err error) admin.Faulty {
	faults, ok := errors.AsType[config.Faults](err)
	if !ok {
		return admin.Faulty{{Message: err.Error(), Text: err.Error()}}
	}
	all := make(admin.Faulty, len(faults))
	for i, f := range faults {
		all[i] = admin.Fault{File: f.File, Line: f.Line, Column: f.Col, Key: f.Key, Message: f.Message, Hint: f.Hint, Text: f.String()}
	}
	return all
}

// idle reports whether a reload changed nothing.
func idle(d admin.Reloaded) bool {
	return d.Installations.None() && d.Targets.None() && len(d.Keys) == 0
}

func absolute(files []string) []string {
	all := make([]string, len(files))
	for i, f := range files {
		all[i] = f
		if abs, err := filepath.Abs(f); err == nil {
			all[i] = abs
		}
	}
	return all
}

// heed reloads at every hangup until ctx ends.
func (r *reloader) heed(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.p.hangup:
			r.hangup(ctx)
		}
	}
}
