package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

func (v *validator) store(s Store) {
	for key, ref := range map[string]Reference{"url": s.URL.Reference, "master_key": s.MasterKey} {
		if ref.Kind == "secret" {
			v.fail(spot{}.key("store").key(key), "a secret of the store opens once the store is open", `use { env = "NAME" }, { file = "PATH" } or { credential = "NAME" }`)
		}
	}
	if s.URL.Kind != "" {
		return // known when it is resolved
	}
	at := spot{}.key("store").key("url")
	_, message, hint := storeURL(s.URL.Literal)
	switch {
	case message != "":
		v.fail(at, message, hint)
	case password(s.URL.Literal) && v.pos(at.path).File != environment:
		v.fail(at, `a literal secret is refused; put the whole URL in a file and write url = { file = "PATH" }, or set LEASEHOLD_STORE_URL`, "")
	}
}

// postgresExample is what a person may write.
const postgresExample = `such as "postgres://leasehold@db.example.org/leasehold?sslmode=verify-full"`

// storeURL is the file that a store.url names, or the whole of it when it names a
// server. The message does not repeat the url, which may hold a password.
func storeURL(u string) (to, message, hint string) {
	if !onServer(u) {
		return sqlitePath(u)
	}
	if strings.ContainsRune(u, 0) {
		return "", "is no URL", postgresExample
	}
	if _, err := url.Parse(u); err != nil {
		return "", "is no URL", postgresExample
	}
	return u, "", ""
}

// onServer reports whether a store.url names a server.
func onServer(u string) bool {
	return strings.HasPrefix(u, "postgres://") || strings.HasPrefix(u, "postgresql://")
}

// password reports whether a store.url holds one.
func password(u string) bool {
	parsed, err := url.Parse(u)
	if err != nil || !onServer(u) {
		return false
	}
	_, set := parsed.User.Password()
	return set || parsed.Query().Has("password")
}

// sqlitePath is the path in a store.url. The message does not repeat the url,
// which may hold a password.
func sqlitePath(u string) (path, message, hint string) {
	scheme, rest, _ := strings.Cut(u, ":")
	switch {
	case strings.EqualFold(scheme, "postgres") || strings.EqualFold(scheme, "postgresql"):
		return "", "is no URL", postgresExample
	case scheme != "sqlite":
		return "", `must begin with "sqlite:" or "postgres://"`, `such as "sqlite:leasehold.db"`
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

// StoreURL is store.url, resolved and absolute: sqlite:/var/lib/leasehold/leasehold.db,
// or postgres://….
func (c *Config) StoreURL(resolve Resolver) (string, error) {
	u, err := c.Store.URL.Resolve(resolve)
	if err != nil {
		return "", fmt.Errorf("store.url: %w", err)
	}
	path, message, hint := storeURL(u)
	if message != "" {
		return "", fmt.Errorf("store.url: %s (%s)", message, hint)
	}
	if onServer(u) {
		return u, nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(string(c.Node.DataDir), path)
	}
	return "sqlite:" + path, nil
}
