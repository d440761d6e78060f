package unixurl_test

import (
	"net/url"
	"testing"

	"leasehold/internal/unixurl"
)

func TestSplit(t *testing.T) {
	for address, want := range map[string]string{
		"http+unix:///run/app.sock:/events":         "/run/app.sock http://localhost/events",
		"http+unix:///run/app.sock:/events?a=b%20c": "/run/app.sock http://localhost/events?a=b%20c",
		"http+unix:///run/app.sock":                 "/run/app.sock http://localhost/",
		"http+unix:///run/a%20b.sock:/x%20y":        "/run/a b.sock http://localhost/x%20y",
		"http+unix:///run/a:b.sock:/x:/y":           "/run/a:b.sock:/x http://localhost/y",
		"http+unix:///C:/app.sock:/events":          "C:/app.sock http://localhost/events",
		"http+unix:///C:/app.sock":                  "C:/app.sock http://localhost/",
		"http+unix://run/app.sock":                  "must name the socket by its absolute path: http+unix:///run/app.sock:/events",
		"http+unix:run/app.sock":                    "must name the socket by its absolute path: http+unix:///run/app.sock:/events",
		"http+unix:///":                             "names no socket; write http+unix:///run/app.sock:/events",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		socket, seen, err := unixurl.Split(u)
		var got string
		if err != nil {
			got = err.Error()
		} else {
			got = socket + " " + seen.String()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}
