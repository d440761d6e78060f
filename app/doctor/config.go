package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"leasehold/config"
)

// Faults are the faults of a config that cannot be read, each by itself.
func Faults(err error) (all []Finding) {
	const next = "correct it; leasehold check looks at the config alone"
	var faults config.Faults
	if !errors.As(err, &faults) {
		return []Finding{{"config", Fail, err.Error(), next}}
	}
	for _, f := range faults {
		all = append(all, Finding{"config", Fail, f.String(), next})
	}
	return all
}

// checkConfig looks at what the files say beyond their form, as a start would.
func checkConfig(ctx context.Context, x *Patient) []Finding {
	if err := x.Startable(ctx); err != nil {
		return Faults(err)
	}
	files := strings.Join(x.Config.Files, ", ")
	if files == "" {
		files = "there is no file; the defaults hold"
	}
	return []Finding{{"config", OK, fmt.Sprintf("%s; %d installations, %d targets", files, len(x.Config.Installations), len(x.Config.Targets)), ""}}
}

// checkSecrets resolves what the config refers to. A variable or a credential may
// be there for the service and not for this shell; a file is the same for both.
func checkSecrets(x *Patient) (all []Finding) {
	for _, u := range x.Config.Uses {
		_, err := x.Resolve(u.Kind, u.Name)
		if err == nil {
			continue
		}
		what, next, told := strings.Cut(err.Error(), "; ")
		if !told {
			next = "put the secret there, readable by leasehold's user alone, or correct the reference"
		}
		f := Finding{"secrets", Fail, fmt.Sprintf("%s: %s: %s", u.Pos, u.Key, what), strings.TrimPrefix(next, "run ")}
		switch u.Kind {
		case "file":
		case "secret": // the store has it for both; what needs it waits for it
			f.Level, f.NextStep = Warn, next
		default:
			f.Level, f.NextStep = Warn, next+" (the service may have it although this shell does not)"
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		all = append(all, Finding{"secrets", OK, fmt.Sprintf("%d references, each has a value and is readable by nobody else", len(x.Config.Uses)), ""})
	}
	return all
}

// checkProxy compares the usual variables with connect.proxy: the HTTP targets heed
// those, channels do not.
func checkProxy(c config.Connect, env func(string) string) []Finding {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		if env(name) != "" && c.Proxy.IsZero() {
			return []Finding{{
				"proxy", Warn, name + " is set here, and connect.proxy is not: HTTP targets go through that proxy, the channels' own connections go direct",
				"when the platforms are reached through it, too, set [connect] proxy",
			}}
		}
	}
	return nil
}
