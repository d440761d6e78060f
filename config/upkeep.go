package config

import (
	"path/filepath"
	"time"
)

// Admin is the table [admin].
type Admin struct {
	// Listen is where the HTTP API listens beside the socket, for whoever has a token: a
	// list of HOST:PORT; port 0 is one that is free, which leasehold status tells. What is not on the loopback needs tls_cert. Default: nowhere.
	Listen []string `toml:"listen"`
	// Socket is the local socket of the running program, mode 0660. Default:
	// leasehold.sock in the runtime folder; in node.data_dir when that is set,
	// so that two copies do not meet.
	Socket Path `toml:"socket"`
	// AllowedHosts are names under which the API is called, beside localhost and the
	// addresses of listen. Default: none.
	AllowedHosts []string `toml:"allowed_hosts"`
	// TLSCert is the PEM file of the API's certificate, with its chain; one that is
	// renewed in its place is taken up. Default: none.
	TLSCert Path `toml:"tls_cert"`
	// TLSKey is the PEM file of its key. Default: none.
	TLSKey Path `toml:"tls_key"`
}

// Health is the table [health].
type Health struct {
	// PingURL is called every minute: with GET while all is well, as leasehold status
	// --check sees it; with POST to it and "/fail", saying what is not, once that was
	// so for a minute. Services that watch cron jobs take both. It is a secret by
	// itself and may be a reference. Default: none.
	PingURL Value `toml:"ping_url" reload:"true"`
}

// Retention is the table [retention]. The sweeper deletes what is older.
type Retention struct {
	// Events is how long an event is kept once all its deliveries are done.
	// Default 7 d.
	Events Duration `toml:"events" default:"7d" positive:"true" reload:"true"`
	// Dead is how long a dead letter is kept with its payload. Default 30 d.
	Dead Duration `toml:"dead" default:"30d" positive:"true" reload:"true"`
	// Messages is how long a message is kept once it was sent, or given up.
	// Default 7 d.
	Messages Duration `toml:"messages" default:"7d" positive:"true" reload:"true"`
	// Audit is how long it is kept who wrote what over the API; the newest 10,000 writes
	// at most are. Default 90 d.
	Audit Duration `toml:"audit" default:"90d" positive:"true" reload:"true"`
}

// Tasks is the table [tasks]: one table for each maintenance loop.
type Tasks struct {
	// Sweeper deletes what is past its retention.
	Sweeper Sweeper `toml:"sweeper"`
	// Upkeep keeps the database file small and watches the disk.
	Upkeep Upkeep `toml:"upkeep"`
	// SelfAudit looks for events that were written out of order.
	SelfAudit SelfAudit `toml:"self_audit"`
	// KeyReload takes up the keys and headers of targets that have changed since.
	KeyReload KeyReload `toml:"key_reload"`
	// ConfigReload applies a changed file of the config.
	ConfigReload Reload `toml:"config_reload"`
	// Backup copies the database.
	Backup Backup `toml:"backup"`
}

// Sweeper is the table [tasks.sweeper].
type Sweeper struct {
	// Every is the time between two cycles. Default 1 h.
	Every Duration `toml:"every" default:"1h" positive:"true" reload:"true"`
	// Batch is how many rows one transaction deletes; events wait that long.
	// Default 500: some milliseconds on a slow disk.
	Batch int `toml:"batch" default:"500" min:"1" max:"100000" reload:"true"`
}

// Upkeep is the table [tasks.upkeep].
type Upkeep struct {
	// Every is the time between two cycles. Default 1 h.
	Every Duration `toml:"every" default:"1h" positive:"true" reload:"true"`
}

// SelfAudit is the table [tasks.self_audit].
type SelfAudit struct {
	// Every is the time between two cycles. Default 10 min.
	Every Duration `toml:"every" default:"10m" positive:"true" reload:"true"`
}

// Reload is the table [tasks.config_reload].
type Reload struct {
	// Every is the time between two looks at the files. A look costs a system call
	// for each; only a file that may have changed is read. Default 1 s.
	Every Duration `toml:"every" default:"1s" positive:"true" reload:"true"`
}

// Backup is the table [tasks.backup].
type Backup struct {
	// Every is the time between two backups; where nothing has changed, none is made.
	// Default: none are made; 24 h once dir is set.
	Every Duration `toml:"every" reload:"true"`
	// Keep is how many of them stay, the newest ones. Default 7.
	Keep int `toml:"keep" default:"7" min:"1" max:"1000" reload:"true"`
	// Dir is the folder that they are in, on another disk at best; one that is set must
	// be there. Default: backups in node.data_dir.
	Dir Path `toml:"dir" reload:"true"`
}

// Interval is the time between two backups; 0 = none are made by themselves: they
// take the database's room again, once for each that is kept.
func (b Backup) Interval() time.Duration {
	if b.Every == 0 && b.Dir != "" {
		return 24 * time.Hour
	}
	return b.Every.Std()
}

// KeyReload is the table [tasks.key_reload].
type KeyReload struct {
	// Every is the time between two looks at the store and at the files of secrets. What
	// cannot be read, or is no key, changes nothing. Default 1 min.
	Every Duration `toml:"every" default:"1m" positive:"true" reload:"true"`
}

// Log is the table [log].
type Log struct {
	// Level is the least that is written: "debug", "info", "warn" or "error".
	// Default info: what an operator wants to read.
	Level string `toml:"level" default:"info" oneof:"debug info warn error" reload:"true"`
	// Format is "json", "text", or "auto": text on a terminal, else JSON lines.
	// Default auto.
	Format string `toml:"format" default:"auto" oneof:"auto json text"`
}

// BackupsDir is the folder of the dated backups; "" where no data folder is known.
func (c *Config) BackupsDir() string {
	switch {
	case c.Tasks.Backup.Dir != "":
		return string(c.Tasks.Backup.Dir)
	case c.Node.DataDir != "":
		return filepath.Join(string(c.Node.DataDir), "backups")
	}
	return ""
}
