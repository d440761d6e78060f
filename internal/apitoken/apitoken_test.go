package apitoken

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestToken(t *testing.T) {
	t.Run("a text is its token's and no other's, and the token does not hold it", func(t *testing.T) {
		var a, b Token
		text, other := New(&a), New(&b)
		if ID(text) != a.ID || !a.Is(text) || a.Is(other) || a.Is(text[:len(text)-1]) || a.Is("") || (Token{}).Is("") {
			t.Error("got a text taken for another token, or refused by its own")
		}
		_, secret, _ := strings.Cut(text[len(Prefix):], "_")
		if bytes.Contains(a.Hash, []byte(secret)) || len(a.Hash) != 32 {
			t.Errorf("got the hash %x, want SHA-256", a.Hash)
		}
	})
	t.Run("what is no token has no id", func(t *testing.T) {
		for _, text := range []string{"", "lht_", "lht_abc", "lht_abc_", "whsec_abc_def", "Bearer lht_a_b"} {
			if got := ID(text); got != "" {
				t.Errorf("%q: got id %q, want none", text, got)
			}
		}
	})
	t.Run("admin may all, and others what they name", func(t *testing.T) {
		for _, scope := range Scopes {
			if !(Token{Scopes: []string{Admin}}).May(scope) || !(Token{Scopes: []string{scope}}).May(scope) || (Token{}).May(scope) {
				t.Errorf("%s: got it wrong", scope)
			}
			if scope != Admin && (Token{Scopes: []string{scope}}).May(Admin) {
				t.Errorf("%s: got admin for it, want it refused", scope)
			}
		}
	})
	t.Run("a pattern binds it to installations", func(t *testing.T) {
		bound := Token{Installations: []string{"acme*", "x"}}
		for id, want := range map[string]bool{"acme": true, "acme-2": true, "x": true, "xy": false, "ac": false, "": false} {
			if got := bound.Sees(id); got != want {
				t.Errorf("%q: got %v, want %v", id, got, want)
			}
		}
		if !(Token{}).Sees("any") || !(Token{}).Everywhere() || bound.Everywhere() {
			t.Error("got a token without patterns bound, or one with patterns free")
		}
	})
	t.Run("it counts until it expires", func(t *testing.T) {
		at := time.Unix(1000, 0)
		if e := (Token{ExpiresAt: at}); e.Expired(at.Add(-time.Second)) || !e.Expired(at) || (Token{}).Expired(at) {
			t.Error("got the expiry wrong")
		}
	})
	t.Run("what cannot be a token is refused", func(t *testing.T) {
		for _, bad := range []Token{{}, {Scopes: []string{"all"}}, {Scopes: []string{Read}, Installations: []string{"["}}, {Scopes: []string{Read}, Installations: []string{""}}} {
			if bad.Check() == nil {
				t.Errorf("%+v: got no error, want one", bad)
			}
		}
	})
}
