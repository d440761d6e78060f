package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"leasehold/channel"
	"leasehold/internal/fault"
	"leasehold/internal/loop"
	"leasehold/internal/redact"
)

// Mode is what the process that answers is to the store.
type Mode string

// The modes.
const (
	Running     Mode = "running"     // it holds the store and runs the installations
	Passive     Mode = "passive"     // another process holds the store; it waits for it
	Stopped     Mode = "stopped"     // nothing runs: a command answers from the store
	Unreachable Mode = "unreachable" // a command answers: another process holds the store and its socket does not
)

// Process is what the handlers ask of the running program. All of it is in
// memory: none blocks, but Ready and Call, at most until ctx.
type Process interface {
	// Info names the process.
	Info() NodeInfo
	// Links is the truth about the installations that this node holds, by id.
	Links() map[string]Status
	// Targets says how each target does.
	Targets() []Target
	// Ready says why this node cannot work; nil: store, session and disk are well.
	Ready(ctx context.Context) error
	// Troubles are the node's own, beside not being ready.
	Troubles() []Trouble
	// Wake makes the lanes of these leases look at the store: deliveries wait again.
	Wake(leases []string)
	// WakeMessages has whoever sends the messages of a lease look at the store.
	WakeMessages(lease string)
	// Limited says for which limit of the platform a message into a conversation of an
	// installation, under a lease, has to wait; "" = none that this node knows of.
	Limited(lease, installation, conversation string) string
	// Call has an installation call its platform, through the connection of a lease. It
	// blocks until there is an answer, at most until ctx. See outbound.Mailer.Call.
	Call(ctx context.Context, lease string, c channel.Call) (json.RawMessage, error)
	// Trigger makes the engine look at the installations now.
	Trigger()
}

// Tasks are the maintenance loops. *loop.Group is one while it runs.
type Tasks interface {
	Status() []loop.Status
	// Trigger runs the named task now and returns its error; fault.NotFound when
	// there is none of that name.
	Trigger(ctx context.Context, name string) error
}

// NodeInfo names a running process.
type NodeInfo struct {
	Instance string    `json:"instance"` // of the data folder, for ever
	Name     string    `json:"name"`
	Session  string    `json:"session,omitempty"` // "" = none is open
	PID      int       `json:"pid"`
	Listen   []string  `json:"listen,omitempty"` // addresses of the API beside the socket
	Started  time.Time `json:"started"`
	// Dropped are the deliveries that gave way to newer events since the start, because
	// of delivery.backlog_max; DroppedAt is when the last ones did.
	Dropped   int64     `json:"dropped"`
	DroppedAt time.Time `json:"dropped_at,omitzero"`
}

// Target is a target and how it does.
type Target struct {
	Name      string    `json:"name"`
	Type      string    `json:"type"`
	State     string    `json:"state"` // ok; failing: reached, and what waits for it is not taken; down: its deliveries wait and use up no attempts; disabled; unknown
	Reason    string    `json:"reason,omitempty"`
	Since     time.Time `json:"since,omitzero"`      // of the state
	NextProbe time.Time `json:"next_probe,omitzero"` // down: when it is tried again

	NextStep     string    `json:"next_step,omitempty"`    // what a person does about it, unless it is ok
	LastError    string    `json:"last_error,omitempty"`   // of the latest attempt that failed
	LastErrorAt  time.Time `json:"last_error_at,omitzero"` // when it failed
	FailingSince time.Time `json:"failing_since,omitzero"` // the first failure since the last success; zero = the last attempt was taken
}

// Version says what was built.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// Options are what the handlers answer from.
type Options struct {
	Store   Store
	Types   *channel.Types
	Mode    Mode
	Holder  string  // who holds the store, when it is not this process
	Process Process // nil unless Running
	Tasks   Tasks   // nil where none can be run
	Backups Backups // nil where none can be made
	Vault   Vault   // nil where there is none
	// Reloader reads the files again; nil where no program runs, or it has none.
	Reloader Reloader
	Version  Version
	// FingerprintKey is made from the store's id. See channel.Config.Fingerprint.
	FingerprintKey []byte
	// Shared: other nodes may be at work in the store. The file's installations were
	// applied to it once, while it was empty, and whoever wants to may change them;
	// otherwise the file owns them.
	Shared bool
	// Declared says where the config file declares an installation (FILE:LINE);
	// "" = it does not.
	Declared func(id string) string
	// Live are the targets of the program; nil unless Running.
	Live LiveTargets
	// CheckTarget reads what a request says of a target.
	CheckTarget TargetChecker
	// DeclaredTarget says where the config file declares a target (FILE:LINE); "" = it
	// does not.
	DeclaredTarget func(name string) string
	// TargetNames are the configured targets; nil: they are not known here.
	TargetNames func() []string
	// Metrics writes the page of metrics, in the text format of Prometheus; nil where no
	// program runs.
	Metrics func(ctx context.Context, w io.Writer) error
	Redact  *redact.Redactor
	Log     *slog.Logger
}

// API is the set of handlers.
type API struct {
	o   Options
	mux *http.ServeMux
}

// New makes the handlers. Redact, Declared, DeclaredTarget, CheckTarget and Log may be nil.
func New(o Options) *API {
	if o.Redact == nil {
		o.Redact = redact.New()
	}
	if o.Declared == nil {
		o.Declared = func(string) string { return "" }
	}
	if o.DeclaredTarget == nil {
		o.DeclaredTarget = func(string) string { return "" }
	}
	if o.CheckTarget == nil {
		o.CheckTarget = func(string, json.RawMessage) (json.RawMessage, string, error) {
			return nil, "", fault.Errorf(fault.Conflict, "targets cannot be changed here")
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &API{o: o, mux: http.NewServeMux()}
	a.routes()
	return a
}

func (a *API) routes() {
	for pattern, h := range a.table() {
		a.mux.Handle(pattern, a.watched(pattern, a.serve(pattern, h)))
	}
}

// table is every route; access says who may use it.
func (a *API) table() map[string]handler {
	return map[string]handler{
		"GET /healthz":    a.health,
		"GET /readyz":     a.ready,
		"GET /metrics":    a.metrics,
		"GET /v1/status":  a.status,
		"GET /v1/version": a.version,

		"GET /v1/installations":               a.listInstallations,
		"GET /v1/installations/{id}":          a.showInstallation,
		"PUT /v1/installations/{id}":          a.putInstallation,
		"POST /v1/installations/{id}/enable":  a.enableInstallation,
		"POST /v1/installations/{id}/disable": a.disableInstallation,
		"POST /v1/installations/{id}/call":    a.callInstallation,
		"DELETE /v1/installations/{id}":       a.removeInstallation,

		"GET /v1/targets":                 a.listTargets,
		"GET /v1/targets/{name}":          a.showTarget,
		"PUT /v1/targets/{name}":          a.putTarget,
		"PATCH /v1/targets/{name}":        a.patchTarget,
		"DELETE /v1/targets/{name}":       a.removeTarget,
		"POST /v1/targets/{name}/enable":  a.enableTarget,
		"POST /v1/targets/{name}/disable": a.disableTarget,
		"POST /v1/targets/{name}/test":    a.testTarget,
		"GET /v1/targets/{name}/pull":     a.pull,
		"GET /v1/targets/{name}/stream":   a.pullStream,
		"POST /v1/targets/{name}/ack":     a.acknowledge,
		"POST /v1/targets/{name}/nack":    a.giveBack,

		"GET /v1/types":        a.listTypes,
		"GET /v1/types/{name}": a.showType,

		"GET /v1/events":             a.listEvents,
		"GET /v1/events/tail":        a.tailEvents,
		"GET /v1/events/{id}":        a.showEvent,
		"POST /v1/events/replay":     a.replayEvents,
		"POST /v1/events/{id}/reply": a.replyEvent,

		"GET /v1/trace/{id}": a.trace,

		"GET /v1/deliveries":              a.listDeliveries,
		"GET /v1/deliveries/{id}":         a.showDelivery,
		"POST /v1/deliveries/replay":      a.replayDeliveries,
		"POST /v1/deliveries/drop":        a.dropDeliveries,
		"POST /v1/deliveries/{id}/replay": a.replayDelivery,
		"POST /v1/deliveries/{id}/drop":   a.dropDelivery,

		"POST /v1/installations/{id}/messages": a.postMessage,
		"GET /v1/messages":                     a.listMessages,
		"GET /v1/messages/{id}":                a.showMessage,

		"GET /v1/tasks":             a.listTasks,
		"POST /v1/tasks/{name}/run": a.runTask,
		"POST /v1/backups":          a.makeBackup,
		"GET /v1/nodes":             a.listNodes,

		"POST /v1/nodes/{name}/drain":  a.drainNode,
		"POST /v1/nodes/{name}/resume": a.resumeNode,

		"GET /v1/secrets":             a.listSecrets,
		"PUT /v1/secrets/{name}":      a.setSecret,
		"DELETE /v1/secrets/{name}":   a.removeSecret,
		"GET /v1/keys":                a.listKeys,
		"POST /v1/keys":               a.createKey,
		"POST /v1/keys/{id}/retire":   a.retireKey,
		"DELETE /v1/keys/{id}":        a.removeKey,
		"POST /v1/keys/rotate-master": a.rotateMaster,

		"GET /v1/tokens":         a.listTokens,
		"POST /v1/tokens":        a.createToken,
		"DELETE /v1/tokens/{id}": a.revokeToken,
		"GET /v1/audit":          a.listAudit,

		"POST /v1/reload": a.reload,

		"/": a.nowhere,
	}
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// handler answers a request, or returns why it cannot; it has then written nothing.
type handler func(w http.ResponseWriter, r *http.Request) error

// serve is where every handler's error, and its panic, becomes an answer.
func (a *API) serve(pattern string, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				a.fail(w, r, fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
			}
		}()
		err := a.allow(pattern, r)
		if err == nil {
			err = h(w, r)
		}
		if err != nil {
			a.fail(w, r, err)
		}
	})
}

// nowhere answers what no pattern matches: a path that is not there, or a method
// that its path does not have.
func (a *API) nowhere(w http.ResponseWriter, r *http.Request) error {
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodPost, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := a.mux.Handler(other); pattern != "/" {
			w.Header().Add("Allow", method)
		}
	}
	if allowed := w.Header().Values("Allow"); len(allowed) > 0 {
		return &statusError{http.StatusMethodNotAllowed, fault.Errorf(fault.Invalid, "%s takes %v, not %s", r.URL.Path, allowed, r.Method)}
	}
	return fault.Errorf(fault.NotFound, "there is nothing at %s", r.URL.Path)
}

func requestAttrs(r *http.Request, err error) []slog.Attr {
	return []slog.Attr{slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("error", err)}
}

// slogLevel: a store that cannot work is an operator's news, anything else here
// is a mistake of ours; both are errors, a busy one is not.
func slogLevel(err error) slog.Level {
	if fault.Is(err, fault.Busy) {
		return slog.LevelWarn
	}
	return slog.LevelError
}

var errNotRunning = errors.New("nothing runs here; start it with leasehold run")
