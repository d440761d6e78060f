package config

import (
	"encoding/json"
	"reflect"
)

// Config is the whole configuration, with defaults applied. It is plain data:
// nothing in it changes after Load returns it.
type Config struct {
	// Node is this process: its name and where it keeps its data.
	Node Node `toml:"node"`
	// Store is the database.
	Store Store `toml:"store"`
	// Lease is the timing that keeps two nodes from running one installation.
	Lease Lease `toml:"lease"`
	// Connect bounds how channels reach their platforms.
	Connect Connect `toml:"connect"`
	// Delivery is what holds for all targets.
	Delivery Delivery `toml:"delivery"`
	// Targets are where events go, in the order of the files.
	Targets []Target `toml:"target" reload:"true"`
	// Installations are the bots and devices, in the order of the files.
	Installations []Installation `toml:"installation" reload:"true"`
	// Admin is how commands and programs reach the running process.
	Admin Admin `toml:"admin"`
	// Health tells somebody outside that all is well.
	Health Health `toml:"health"`
	// Retention is how long what is done with is kept.
	Retention Retention `toml:"retention"`
	// Tasks are the maintenance loops, a table for each.
	Tasks Tasks `toml:"tasks"`
	// Log is what is written to stderr.
	Log Log `toml:"log"`

	// Files lists what was read, in order; empty when there was no file.
	Files []string
	// OwnTargets: delivery.targets is set by somebody, and not every target.
	OwnTargets bool
	// OwnDataDir: node.data_dir is set by somebody, and not the machine's default.
	OwnDataDir bool
	// Uses lists every reference to a secret, in the order of the files.
	Uses []Use
}

// Node is the table [node].
type Node struct {
	// Name is what people call this machine; it is in every envelope and state.
	// Default: the host's name.
	Name string `toml:"name"`
	// DataDir is the folder of the store, the identity and the lock; it is made
	// when missing. A relative path is relative to the file's folder. Default:
	// the service manager's state folder, else /var/lib/leasehold for root on
	// Linux, else leasehold under the user's data folder.
	DataDir Path `toml:"data_dir"`
	// Labels are free words about this machine, in every envelope. Default: none.
	Labels map[string]string `toml:"labels" reload:"true"`
	// Weight is this node's share of the installations, beside the other nodes'.
	// Default 1; on SQLite, where there is one node, it has no effect.
	Weight int `toml:"weight" default:"1" min:"1" max:"1000"`
	// DrainTimeout is how long a stop waits for connections to say goodbye and
	// for deliveries in flight; then it stops anyway and loses nothing. Default
	// 20 s: within the 30 s after which Kubernetes kills.
	DrainTimeout Duration `toml:"drain_timeout" default:"20s" positive:"true"`
}

// Store is the table [store].
type Store struct {
	// URL says which database: "sqlite:PATH", relative to node.data_dir, for one
	// process; "postgres://USER@HOST/DATABASE" for several nodes. With a password in
	// it, it must be a reference to a secret. SQLite takes no parameters; Postgres
	// takes those of libpq (sslmode, sslrootcert, target_session_attrs, ...).
	URL Value `toml:"url" default:"sqlite:leasehold.db"`
	// MasterKey encrypts the secrets and the signing keys in the store: { file = "PATH" }
	// or another reference to what leasehold keys new-master printed. With two, one a
	// line, leasehold keys rotate-master seals all with the first. Default: on SQLite
	// master.key in node.data_dir, made when something is sealed first; nodes that share a
	// Postgres need one that all of them have.
	MasterKey Reference `toml:"master_key"`
	// Migrate says when the schema is brought up to date: "auto", at every start;
	// "manual", by "leasehold migrate" alone: until then a start on an older schema ends
	// with 78. Default "auto".
	Migrate string `toml:"migrate" default:"auto" oneof:"auto manual"`
	// PollOnly is for a Postgres behind a pooler in transaction mode: without LISTEN
	// and prepared statements; changes by other nodes are seen within a second.
	// Default false.
	PollOnly bool `toml:"poll_only" default:"false"`
	// AutoRestore restores the newest sound backup when a start finds the database
	// damaged, and keeps the damaged one beside it. What came after the backup is
	// lost. Default false: a person decides.
	AutoRestore bool `toml:"auto_restore" default:"false"`
	// ForceNetworkFS allows a database on a network file system, where locks may
	// lie and two processes may run one installation. Default false.
	ForceNetworkFS bool `toml:"force_network_fs" default:"false"`
}

// Lease is the table [lease]. Its four numbers must satisfy the inequality of
// Lease.Trust; the defaults do. A store that is proven to have one process only
// (SQLite under its file lock) does not renew, and ignores them.
type Lease struct {
	// TTL is how long a session lives without a renewal, on the database's
	// clock: the longest an installation is deaf after its node died. Default 30 s.
	TTL Duration `toml:"ttl" default:"30s" positive:"true"`
	// RenewEvery is the time between two renewals. Default 5 s.
	RenewEvery Duration `toml:"renew_every" default:"5s" positive:"true"`
	// AttemptTimeout bounds one attempt to renew. Default 3 s.
	AttemptTimeout Duration `toml:"attempt_timeout" default:"3s" positive:"true"`
	// Margin is how long before the end of the TTL a node that could not renew
	// closes its sockets: clock steps and scheduling, and the closing itself,
	// which takes up to 2 s; so no less than that. Default 3 s.
	Margin Duration `toml:"margin" default:"3s" min:"2s"`
}

// Connect is the table [connect].
type Connect struct {
	// PerTypeRate is how many dials per second are begun for each channel type; one
	// that makes no connection, heartbeat, does not wait for it. Default 50: a
	// thousand are back in twenty seconds.
	PerTypeRate float64 `toml:"per_type_rate" default:"50" positive:"true" max:"10000"`
	// InFlight is how many dials, of all types, may be unanswered at once.
	// Default 64.
	InFlight int `toml:"in_flight" default:"64" min:"1" max:"10000"`
	// Proxy is the proxy for every socket of a channel: http, https or socks5.
	// With a password in it, it must be a reference to a secret. Default: none;
	// the usual HTTPS_PROXY variables are not read.
	Proxy Value `toml:"proxy"`
	// NoProxy lists hosts, domains (".example.org") and CIDRs that are dialled
	// directly. Default: none. Without proxy it does nothing.
	NoProxy []string `toml:"no_proxy"`
	// CAFile is a PEM file of certificates to trust beside the system's.
	// Default: none.
	CAFile Path `toml:"ca_file"`
}

// Installation is one [[installation]]: a bot or a device account.
type Installation struct {
	// ID names it for ever, unique in all files: letters, digits, ".", "_", "-".
	ID string `toml:"id" required:"true"`
	// Type is its channel type; leasehold types list shows them.
	Type string `toml:"type" required:"true"`
	// Via is the id of the installation on whose connection it rides, of the
	// same type and itself without via. Default: it has its own connection.
	Via string `toml:"via"`
	// Enabled is false to keep it without connecting it; what waits is still
	// delivered. Default true.
	Enabled bool `toml:"enabled" default:"true"`
	// Labels are free words about it, in the envelope of its events. Default: none.
	Labels map[string]string `toml:"labels"`
	// Targets names where its events go; [] is nowhere. Default: delivery.targets.
	Targets []string `toml:"targets"`
	// Interactions says who answers a button or a slash command, where the type has any:
	// "defer" is us, at once, that it is worked on; "sync" is the program, with
	// {"ack": …} within 2.5 s, else us. Default defer.
	Interactions string `toml:"interactions" default:"defer" oneof:"defer sync"`
	// Config is the table [installation.config]: the type's own keys as JSON,
	// keys sorted, secrets still references ({"env":"X"}, files absolute).
	// Default: {}.
	Config json.RawMessage `toml:"config"`

	// Pos is where the installation is defined.
	Pos Pos
	// Keys is where the keys of Config are set, by their path: url, pointers.id.
	Keys map[string]Pos
}

// Use is one place where a secret is referred to.
type Use struct {
	Pos
	Key string // as faults name it: installation "acme": app_token
	Reference
}

// Default is the configuration of an empty file. What depends on the machine
// (node.name, node.data_dir, admin.socket) is empty; Load fills it in.
func Default() *Config {
	c := new(Config)
	applyDefaults(reflect.ValueOf(c).Elem())
	return c
}
