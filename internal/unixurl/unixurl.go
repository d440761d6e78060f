// Package unixurl reads the addresses of HTTP servers that listen on a Unix socket:
// http+unix:///run/app.sock:/events is the socket /run/app.sock, asked for /events.
// The config file and delivery read the same because both ask here.
package unixurl

import (
	"errors"
	"net/url"
	"strings"
)

// Scheme is how such an address begins.
const Scheme = "http+unix"

// Split takes an address of this scheme apart: the file of the socket, and the
// address that HTTP sees. The path ends where the last :/ stands; without one the
// server is asked for /.
func Split(u *url.URL) (socket string, seen *url.URL, err error) {
	if u.Host != "" || !strings.HasPrefix(u.Path, "/") {
		return "", nil, errors.New("must name the socket by its absolute path: http+unix:///run/app.sock:/events")
	}
	socket, path := u.Path, "/"
	// Behind a letter, :/ is a Windows volume.
	if i := strings.LastIndex(u.Path, ":/"); i > len("/C") {
		socket, path = u.Path[:i], u.Path[i+1:]
	}
	if len(socket) > 2 && socket[2] == ':' {
		socket = socket[1:]
	}
	if strings.Trim(socket, "/") == "" {
		return "", nil, errors.New("names no socket; write http+unix:///run/app.sock:/events")
	}
	return socket, &url.URL{Scheme: "http", Host: "localhost", Path: path, RawQuery: u.RawQuery}, nil
}
