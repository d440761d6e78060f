package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"leasehold/admin"
)

// cmdSays keeps what a command says, as it is for people and for programs, in a file of
// a folder. How it ends is not looked at.
func cmdSays(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: says folder arg…")
	}
	for _, form := range [][]string{nil, {"--json"}} {
		line := append(args[1:], form...)
		out, err := command(ts, line...)
		if err != nil && len(out) == 0 {
			ts.Fatalf("%v: got %v and no word, want some", line, err)
		}
		name := strings.NewReplacer("/", "_", " ", "_").Replace(strings.Join(line, " "))
		ts.Check(os.WriteFile(filepath.Join(ts.MkAbs(args[0]), name), out, 0o600))
	}
}

// routes are the patterns of what can be asked, as the table of rules has them: a new one
// is asked, too.
var routes = regexp.MustCompile(`"GET (/[^"]*)"`)

// streams are the ends of the routes whose answer has no end of its own: it is cut off
// after streamedFor.
var streams = regexp.MustCompile(`/(tail|stream)$`)

const streamedFor, answeredWithin = time.Second, 20 * time.Second

// cmdAnswers asks the program that runs everything that can be asked over the API, and
// keeps the answers in files of a folder. $DELIVERY is a delivery from then on.
func cmdAnswers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: answers socket folder")
	}
	table, err := os.ReadFile(filepath.Join(ts.Getenv("REPO"), "admin", "access.go"))
	ts.Check(err)
	way := admin.Socket(ts.MkAbs(args[0]))
	first := func(list string) (id string) {
		var page struct{ Items []struct{ ID string } }
		ts.Check(json.Unmarshal(ask(ts, way, list), &page))
		if len(page.Items) == 0 {
			ts.Fatalf("%s: got nothing, want something to ask about", list)
		}
		return page.Items[0].ID
	}
	ts.Setenv("DELIVERY", first("/v1/deliveries"))
	// What a route's parameter stands for.
	about := map[string]string{
		"/v1/installations/": "acme", "/v1/types/": "websocket", "/v1/targets/": "batchjob",
		"/v1/events/": first("/v1/events"), "/v1/trace/": first("/v1/deliveries"),
		"/v1/deliveries/": first("/v1/deliveries"), "/v1/messages/": first("/v1/messages"),
	}
	all := routes.FindAllSubmatch(table, -1)
	if len(all) < 25 {
		ts.Fatalf("got %d routes, want all of them", len(all))
	}
	for _, found := range all {
		path := string(found[1])
		if before, rest, has := strings.Cut(path, "{"); has {
			_, after, _ := strings.Cut(rest, "}")
			if about[before] == "" {
				ts.Fatalf("%s: say in cmdAnswers what to ask about", path)
			}
			path = before + about[before] + after
		}
		name := strings.ReplaceAll(path[1:], "/", "_")
		ts.Check(os.WriteFile(filepath.Join(ts.MkAbs(args[1]), name), ask(ts, way, path), 0o600))
	}
}

// ask is an answer, as far as it comes in time.
func ask(ts *testscript.TestScript, way http.RoundTripper, path string) []byte {
	stream, within := streams.MatchString(path), answeredWithin
	if stream {
		within = streamedFor
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://leasehold"+path, nil)
	ts.Check(err)
	a, err := way.RoundTrip(r)
	if stream && errors.Is(err, context.DeadlineExceeded) {
		return nil // it has nothing to say
	}
	ts.Check(err)
	defer func() { _ = a.Body.Close() }() // it was read as far as it came
	if a.StatusCode != http.StatusOK && path != "/readyz" {
		ts.Fatalf("%s: got %s, want 200", path, a.Status)
	}
	body, err := io.ReadAll(a.Body)
	if err != nil && (!stream || !errors.Is(err, context.DeadlineExceeded)) {
		ts.Check(fmt.Errorf("%s: %w", path, err))
	}
	return body
}
