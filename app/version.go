package app

import (
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"leasehold/admin"
)

// buildVersion says what was built, as the linker recorded it.
func buildVersion() admin.Version {
	v := admin.Version{Version: "devel", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value
		}
	}
	return v
}

// toolchainDay is when the Go that this program needs came out: no build is older.
var toolchainDay = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

// buildTime is a moment before which this program was not there: the time of the
// commit that it was built from, where the linker recorded it.
func buildTime() time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if at, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil && at.After(toolchainDay) {
				return at
			}
		}
	}
	return toolchainDay
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which version this is", Args: exactly(), Example: "  leasehold version --json",
		RunE: func(*cobra.Command, []string) error { return p.version() },
	}
}

func (p *program) version() error {
	v := buildVersion()
	if p.json {
		return p.asJSON(v)
	}
	p.line("leasehold %s %s/%s %s", v.Version, v.OS, v.Arch, v.Go)
	return nil
}
