package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"leasehold/admin"
	"leasehold/config"
	"leasehold/internal/apitoken"
	"leasehold/internal/durable"
)

// adminTokenFile is the name of the file with the first token.
const adminTokenFile = "admin.token"

// listeners open the addresses of admin.listen; none by default.
func listeners(ctx context.Context, c config.Admin) (all []net.Listener, err error) {
	for _, address := range c.Listen {
		l, err := admin.ListenTCP(ctx, address, string(c.TLSCert), string(c.TLSKey))
		if err != nil {
			for _, l := range all {
				err = errors.Join(err, l.Close())
			}
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// gateHosts are the names under which the API is called.
func gateHosts(c config.Admin) []string {
	hosts := append([]string{}, c.AllowedHosts...)
	for _, address := range c.Listen {
		if host, _, err := net.SplitHostPort(address); err == nil && host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// firstToken makes a token that may all, in a file of the data folder, where the API is
// to be reached over TCP and there is none yet. It is nowhere else.
func (p *program) firstToken(ctx context.Context, c *config.Config, s admin.Store) error {
	if len(c.Admin.Listen) == 0 {
		return nil
	}
	all, err := s.Tokens(ctx)
	if err != nil || len(all) > 0 {
		return err
	}
	t := apitoken.Token{Name: "first", Scopes: []string{apitoken.Admin}}
	text := apitoken.New(&t)
	p.redact.Add(text)
	path := filepath.Join(string(c.Node.DataDir), adminTokenFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of another store; its mode is nobody's choice
		return fmt.Errorf("make the first token: %w", err)
	}
	durable.Tidy(path)
	if err := durable.Replace(path, []byte(text+"\n"), 0o600); err != nil {
		return fmt.Errorf("make the first token: %w", err)
	}
	return s.PutToken(ctx, t)
}
