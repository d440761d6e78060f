//go:build linux

package evidence_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"leasehold/internal/fault"
	"leasehold/store/postgres/pgtest"
)

const (
	// rotationNodes share one Postgres; each holds some of rotationBots.
	rotationNodes, rotationBots = 2, 4
	// takenUpWithin is what the others may take to sign with a new key.
	takenUpWithin = time.Minute
	// rotationConfig is a node's: its name stands in a header of its requests. The task
	// that looks for changed keys is quick on one of them, which shows that it finds what
	// nobody tells of.
	rotationConfig = `[node]
name = "evidence"
data_dir = "data"
[store]
url = %q
master_key = { file = "master.key" }
[tasks.key_reload]
every = %q
[[target]]
name = "app"
type = "http"
events = ["*"]
url = %q
headers = { x-node = { env = "NODE" } }
`
)

func TestKeyRotation(t *testing.T) {
	t.Parallel() // it waits, mostly
	t.Run("keys and the master key are replaced on two nodes while events flow, and no request is refused", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t, pgtest.New(t), rotationNodes, rotationBots)
		r := &verifier{next: c.program, last: map[string]int{}}
		server := httptest.NewServer(r)
		t.Cleanup(server.Close)
		one, two := c.nodes[0], c.nodes[1]
		var first madeKey
		old := secretOf(t, one.box, "keys", "new-master", "--json")
		for n, every := range []string{"1s", "1m"} {
			c.nodes[n].configure(fmt.Sprintf(rotationConfig, c.through(c.server.Addr()), every, server.URL))
			c.nodes[n].masterKeys(old)
			c.nodes[n].up()
			c.nodes[n].p.saying(`"msg":"ready"`)
			if n == 0 { // the other one has it from its start
				first = created(t, one.box)
			}
		}
		r.know(first)
		file := filepath.Join(one.dir, "bots.toml")
		must(t, os.WriteFile(file, []byte(c.installations), 0o600))
		done(t, one.box, "apply", "-f", file)
		c.heal()
		pgtest.KeepBooks(t, c.url)
		stop := c.talk()
		r.signed(t, 1, 4*rotationBots, rotationNodes) // the platform has four conversations of each

		// Create, both sign, the receiver moves, retire, forget: through the one node and
		// through the other.
		for i, through := range []*box{one.box, two.box} {
			began := time.Now()
			second := created(t, through)
			r.signed(t, 2, 0, 0)
			took := time.Since(began)
			t.Logf("key %d: both nodes sign with it, too, on every lane, %v after it was asked for", i+2, took.Round(time.Millisecond))
			if took > takenUpWithin {
				t.Errorf("got both signatures after %v, want them within %v", took, takenUpWithin)
			}
			r.know(second)
			done(t, through, "keys", "retire", first.ID)
			r.signed(t, 1, 0, 0)
			done(t, through, "keys", "remove", first.ID)
			first = second
		}

		// What nobody tells of is found by the task that looks.
		third := created(t, two.box)
		r.signed(t, 2, 0, 0)
		pgtest.Exec(t, c.url, `UPDATE signing_key SET retired_at = 1 WHERE id = $1`, third.ID)
		pgtest.Exec(t, c.url, `UPDATE vault SET version = version + 1`)
		r.signedBy(t, token(one.name), 1)

		// The master key: both have the new one in front, it is rotated, the old one goes.
		next := secretOf(t, one.box, "keys", "new-master", "--json")
		for _, n := range c.nodes {
			n.masterKeys(next, old)
		}
		done(t, two.box, "keys", "rotate-master")
		for _, n := range c.nodes {
			n.masterKeys(next)
			n.term(0)
			want(t, "exit code", n.p.exit(drainTimeout), 0)
			n.up()
			n.p.saying(`"msg":"ready"`)
		}
		r.signedBy(t, token(one.name), 1) // which has begun anew, and has what the other gave up
		late := newBox(t, "")
		late.env = one.env
		late.configure(fmt.Sprintf(rotationConfig, c.through(c.server.Addr()), "1m", server.URL))
		must(t, os.WriteFile(filepath.Join(late.dir, "master.key"), []byte(old.Key+"\n"), 0o600))
		p := late.start()
		want(t, "exit code with the old master key", p.exit(drainTimeout), fault.ExitConfig)
		p.saying("needs master key " + next.ID)

		stop()
		c.heal()
		c.close()
		requests, refused := r.judged()
		for _, words := range refused {
			t.Error(words)
		}
		t.Logf("%d events, %d requests, %d refused, 3 signing keys and 2 master keys", c.pushed, requests, len(refused))
	})
}

// madeKey is a key as it is printed, once.
type madeKey struct{ ID, Key string }

// secretOf runs a command that prints a key.
func secretOf(t testing.TB, w *box, args ...string) (k madeKey) {
	t.Helper()
	cmd := w.command(args...)
	out, err := cmd.Output()
	must(t, err)
	must(t, json.Unmarshal(out, &k))
	return k
}

func created(t testing.TB, w *box) madeKey {
	t.Helper()
	return secretOf(t, w, "keys", "create", "--target", "app", "--json")
}

// done runs a command that must succeed.
func done(t testing.TB, w *box, args ...string) {
	t.Helper()
	if out, code := w.tell(args...); code != 0 {
		t.Fatalf("%s: got %d %s, want a success", strings.Join(args, " "), code, out)
	}
}

// masterKeys gives a node the keys that it has from now on.
func (n *clusterNode) masterKeys(keys ...madeKey) {
	n.Helper()
	var text strings.Builder
	for _, k := range keys {
		text.WriteString(k.Key + "\n")
	}
	path := filepath.Join(n.dir, "master.key")
	must(n.T, os.WriteFile(path+".new", []byte(text.String()), 0o600))
	must(n.T, os.Rename(path+".new", path)) // a node that looks meanwhile sees the one or the other
}

// verifier takes what the official library finds to be signed with the key that it
// knows, and refuses the rest.
type verifier struct {
	next http.Handler

	mu       sync.Mutex // guards what follows
	key      *standardwebhooks.Webhook
	last     map[string]int // signatures of the last request of each node, and of each lane
	requests int
	refused  []string
}

func (v *verifier) know(k madeKey) {
	webhook, err := standardwebhooks.NewWebhook(k.Key)
	if err != nil {
		panic(err) // it was made by the program
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.key = webhook
}

func (v *verifier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender was stopped in the middle of it
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err := v.verify(r.Header, body); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	v.next.ServeHTTP(w, r)
}

func (v *verifier) verify(h http.Header, body []byte) error {
	var e struct {
		Data struct {
			Installation, Conversation struct{ ID string }
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requests++
	if err := json.Unmarshal(body, &e); err != nil {
		v.refused = append(v.refused, err.Error())
		return err
	}
	n := len(strings.Fields(h.Get("webhook-signature")))
	v.last[h.Get("x-node")] = n
	v.last[e.Data.Installation.ID+" "+e.Data.Conversation.ID] = n
	if err := v.key.Verify(body, h); err != nil {
		v.refused = append(v.refused, fmt.Sprintf("a request of %s with %d signatures was refused: %v", h.Get("x-node"), n, err))
		return err
	}
	return nil
}

// signed waits until the last request of every lane and every node had n signatures.
// Nothing that is on its way has another number then: a lane has one at a time, and a
// node goes on with what it has taken up. lanes and nodes are how many there must be.
func (v *verifier) signed(t testing.TB, n, lanes, nodes int) {
	t.Helper()
	await(t, 2*takenUpWithin, func() (string, bool) {
		v.mu.Lock()
		defer v.mu.Unlock()
		have := 0
		for _, got := range v.last {
			if got == n {
				have++
			}
		}
		return fmt.Sprintf("got %d signatures of %d of %d lanes and nodes", n, have, len(v.last)), have == len(v.last) && have >= lanes+nodes
	})
}

// signedBy waits for a request of one node with n signatures.
func (v *verifier) signedBy(t testing.TB, node string, n int) {
	t.Helper()
	v.mu.Lock()
	delete(v.last, node)
	v.mu.Unlock()
	await(t, 2*takenUpWithin, func() (string, bool) {
		v.mu.Lock()
		defer v.mu.Unlock()
		return fmt.Sprintf("got %d signatures of %s, want %d", v.last[node], node, n), v.last[node] == n
	})
}

func (v *verifier) judged() (requests int, refused []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.requests, v.refused
}
