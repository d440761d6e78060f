package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"leasehold/config"
)

// configFaults are the faults of a config that cannot be read, each by itself.
func configFaults(err error) (all []finding) {
	const next = "correct it; leasehold check looks at the config alone"
	var faults config.Faults
	if !errors.As(err, &faults) {
		return []finding{{"config", fail, err.Error(), next}}
	}
	for _, f := range faults {
		all = append(all, finding{"config", fail, f.String(), next})
	}
	return all
}

// checkConfig looks at what the files say beyond their form, as a start would.
func (p *program) checkConfig(ctx context.Context, x *patient) []finding {
	if err := p.lookIntoVault(ctx, x.config, x.resolve); err != nil {
		return configFaults(err)
	}
	if err := errors.Join(unbuilt(ctx, x.config, x.types, x.resolve), p.startable(x.config, x.resolve)); err != nil {
		return configFaults(err)
	}
	files := strings.Join(x.config.Files, ", ")
	if files == "" {
		files = "there is no file; the defaults hold"
	}
	return []finding{{"config", fine, fmt.Sprintf("%s; %d installations, %d targets", files, len(x.config.Installations), len(x.config.Targets)), ""}}
}

// checkSecrets resolves what the config refers to. A variable or a credential may
// be there for the service and not for this shell; a file is the same for both.
func (p *program) checkSecrets(x *patient) (all []finding) {
	for _, u := range x.config.Uses {
		_, err := x.resolve(u.Kind, u.Name)
		if err == nil {
			continue
		}
		what, next, told := strings.Cut(err.Error(), "; ")
		if !told {
			next = "put the secret there, readable by leasehold's user alone, or correct the reference"
		}
		f := finding{"secrets", fail, fmt.Sprintf("%s: %s: %s", u.Pos, u.Key, what), strings.TrimPrefix(next, "run ")}
		if u.Kind != "file" {
			f.Level, f.NextStep = warn, next+" (the service may have it although this shell does not)"
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		all = append(all, finding{"secrets", fine, fmt.Sprintf("%d references, each has a value and is readable by nobody else", len(x.config.Uses)), ""})
	}
	return all
}

// checkProxy compares the usual variables with connect.proxy: the HTTP targets heed
// those, channels do not.
func checkProxy(c config.Connect, env func(string) string) []finding {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		if env(name) != "" && c.Proxy.IsZero() {
			return []finding{{
				"proxy", warn, name + " is set here, and connect.proxy is not: HTTP targets go through that proxy, the channels' own connections go direct",
				"when the platforms are reached through it, too, set [connect] proxy",
			}}
		}
	}
	return nil
}
