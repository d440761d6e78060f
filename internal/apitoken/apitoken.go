// Package apitoken is what a token of the HTTP API is: a random text that is shown once,
// of which only the hash is kept, and what whoever has it may do.
package apitoken

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Prefix is how a token says what it is.
const Prefix = "lht_"

// The scopes. Admin is all of them; none of the others is part of another.
const (
	Read          = "read"
	MessagesSend  = "messages:send"
	EventsReply   = "events:reply"
	Installations = "installations:write"
	Call          = "installations:call" // the platform's API, with the installation's credentials
	Targets       = "targets:write"
	Deliveries    = "deliveries:write"
	Secrets       = "secrets:write"
	Tasks         = "tasks:run"
	Admin         = "admin"
)

// Scopes are all scopes, in the order in which people are told of them.
var Scopes = []string{Read, MessagesSend, EventsReply, Installations, Call, Targets, Deliveries, Secrets, Tasks, Admin}

// Token is a token as it is kept. It never holds its text.
type Token struct {
	ID            string    `json:"id"`
	Name          string    `json:"name"`
	Scopes        []string  `json:"scopes"`
	Installations []string  `json:"installations,omitempty"` // patterns of ids; none = all, and what concerns no installation
	CreatedAt     time.Time `json:"created_at"`
	ExpiresAt     time.Time `json:"expires_at,omitzero"` // zero = never
	UsedAt        time.Time `json:"used_at,omitzero"`    // to the hour; zero = never
	Hash          []byte    `json:"-"`                   // SHA-256 of the text
}

// New gives t an id and a hash, and returns its text, which is nowhere else.
func New(t *Token) string {
	var id [6]byte
	var secret [32]byte // as much as the hash can tell apart
	_, _ = rand.Read(id[:])
	_, _ = rand.Read(secret[:]) // they never fail: they end the program instead
	t.ID = hex.EncodeToString(id[:])
	text := Prefix + t.ID + "_" + base64.RawURLEncoding.EncodeToString(secret[:])
	t.Hash = hash(text)
	return text
}

func hash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// ID is the id in the text of a token; "" = it is none.
func ID(text string) string {
	rest, ok := strings.CutPrefix(text, Prefix)
	id, secret, whole := strings.Cut(rest, "_")
	if !ok || !whole || secret == "" {
		return ""
	}
	return id
}

// Is reports whether text is the token's. It takes as long for any text of a length.
func (t Token) Is(text string) bool { return subtle.ConstantTimeCompare(hash(text), t.Hash) == 1 }

// Expired reports whether the token counts no more.
func (t Token) Expired(now time.Time) bool { return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt) }

// May reports whether the token has a scope.
func (t Token) May(scope string) bool {
	return slices.Contains(t.Scopes, scope) || slices.Contains(t.Scopes, Admin)
}

// Everywhere reports whether the token is bound to no installations.
func (t Token) Everywhere() bool { return len(t.Installations) == 0 }

// Sees reports whether the token is for an installation.
func (t Token) Sees(installation string) bool {
	return t.Everywhere() || slices.ContainsFunc(t.Installations, func(pattern string) bool {
		ok, err := path.Match(pattern, installation)
		return ok && err == nil
	})
}

// Check says what is wrong with what a token is to be.
func (t Token) Check() error {
	if len(t.Scopes) == 0 {
		return fmt.Errorf("a token needs a scope: %s", strings.Join(Scopes, ", "))
	}
	for _, s := range t.Scopes {
		if !slices.Contains(Scopes, s) {
			return fmt.Errorf("%q is no scope; there are %s", s, strings.Join(Scopes, ", "))
		}
	}
	for _, pattern := range t.Installations {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf("%q is no pattern of installations; write one such as 'acme*'", pattern)
		}
	}
	return nil
}
