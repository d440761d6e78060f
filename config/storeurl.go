package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

func (v *validator) store(s Store) {
	if s.URL.Kind != "" {
		return // known when it is resolved
	}
	if _, message, hint := sqlitePath(s.URL.Literal); message != "" {
		v.fail(spot{}.key("store").key("url"), message, hint)
	}
}

// sqlitePath is the path in a store.url. The message does not repeat the url,
// which may hold a password.
func sqlitePath(u string) (path, message, hint string) {
	scheme, rest, _ := strings.Cut(u, ":")
	switch {
	case strings.EqualFold(scheme, "postgres") || strings.EqualFold(scheme, "postgresql"):
		return "", "postgres is " + notYet, `use "sqlite:leasehold.db"`
	case scheme != "sqlite":
		return "", `must begin with "sqlite:"`, `such as "sqlite:leasehold.db"`
	case strings.ContainsAny(rest, "?#\x00"):
		return "", "takes no parameters", `such as "sqlite:leasehold.db"`
	case strings.HasPrefix(rest, "//"):
		if rest = strings.TrimPrefix(rest, "//"); !filepath.IsAbs(rest) {
			return "", "must name an absolute path after //", `such as "sqlite:///var/lib/leasehold/leasehold.db" or "sqlite:leasehold.db"`
		}
	}
	if rest == "" || rest == ":memory:" || strings.HasSuffix(rest, "/") {
		return "", "must name a file", `such as "sqlite:leasehold.db"`
	}
	return rest, "", ""
}

// StoreURL is store.url, resolved and absolute: sqlite:/var/lib/leasehold/leasehold.db.
func (c *Config) StoreURL(resolve Resolver) (string, error) {
	u, err := c.Store.URL.Resolve(resolve)
	if err != nil {
		return "", fmt.Errorf("store.url: %w", err)
	}
	path, message, hint := sqlitePath(u)
	if message != "" {
		return "", fmt.Errorf("store.url: %s (%s)", message, hint)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(string(c.Node.DataDir), path)
	}
	return "sqlite:" + path, nil
}
