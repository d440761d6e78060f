// Package doctor looks at a machine and at what of Leasehold is on it: the clock,
// the config and its secrets, the data folder and the disk under it, the process
// that runs, its limits and its targets, the store and its backups. Each finding that
// is not ok ends with what mends it. Nothing is changed.
//
// How the installations are, the running process knows: leasehold status.
package doctor

import (
	"context"
	"os"
	"time"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
)

// Level is how much a finding matters.
type Level string

// The levels.
const (
	OK   Level = "ok"
	Warn Level = "warn" // it works, and will not for ever, or not as one thinks
	Fail Level = "fail" // it does not work, or loses what it should keep
)

// Finding is what one check found.
type Finding struct {
	Check    string `json:"check"`
	Level    Level  `json:"level"`
	Detail   string `json:"detail"`
	NextStep string `json:"next_step,omitempty"`
}

// Patient is what the checks look at.
type Patient struct {
	Config  *config.Config
	Resolve channel.Resolver
	Types   *channel.Types
	Version admin.Version            // of this program
	Env     func(name string) string // "" = not set
	Full    bool                     // read the whole database
	Online  bool                     // look names up and connect

	// Startable says what a start would refuse of the config beyond its form.
	Startable func(context.Context) error
	// Status asks whoever answers on the socket. admin.ErrNoAnswer: nobody does.
	Status func(ctx context.Context, socket string) (admin.Overview, error)

	// What the checks have found out for those after them; zero = they could not.
	path    string // of the database
	running bool   // somebody answers on the socket
	node    admin.Overview
}

// Machine looks at what needs no config: the clock.
func Machine() Finding { return checkClock(clockSynchronised(), time.Now(), builtAt()) }

// Examine runs the checks in the order in which one goes about it: without a config
// there is no data folder to look at, without a folder no store. It blocks for as
// long as the database takes to be read (Full) and the hosts to answer (Online).
func Examine(ctx context.Context, x Patient) (found []Finding) {
	found = append(found, checkConfig(ctx, &x)...)
	found = append(found, checkSecrets(&x)...)
	found = append(found, checkProxy(x.Config.Connect, x.Env)...)
	found = append(found, checkDataDir(string(x.Config.Node.DataDir))...)
	found = append(found, checkProcess(ctx, &x)...)
	found = append(found, checkTargets(&x)...)
	found = append(found, checkStore(ctx, &x)...)
	if x.Online {
		found = append(found, checkHosts(ctx, hostsOf(&x))...)
	}
	return found
}

// exists reports whether there is something at path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
