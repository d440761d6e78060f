// Package secretname tells a secret that stands in a config as a literal by where it
// stands: under the name of a header that carries credentials, or as the password
// of a URL. The config file and the API refuse the same ones because both ask here.
//
// It is a guess from names. What a channel type declares as a secret is refused by
// its type, whatever its name.
package secretname

import (
	"regexp"
	"strings"
)

// words are in the names of headers that carry credentials.
var words = []string{"authorization", "cookie", "token", "secret", "api-key", "apikey", "api_key", "password"}

// Looks reports whether a header of this name carries a credential.
func Looks(name string) bool {
	name = strings.ToLower(name)
	for _, word := range words {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

var placeholder = regexp.MustCompile(`\{\{ *[A-Za-z_][A-Za-z0-9_]* *\}\}`)

// OnlyPlaceholders reports whether a text takes what is secret in it from
// elsewhere, as a channel type's templates do: "Bearer {{token}}". What is left
// beside the placeholders may be a scheme, and is too short to be a credential.
func OnlyPlaceholders(text string) bool {
	rest := placeholder.ReplaceAllString(text, "")
	return rest != text && len(strings.TrimSpace(rest)) <= len("Bearer ")
}

// authority is a URL up to its host, with a user and a password.
var authority = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://[^/?#:@]*:([^/?#]+)@`)

// InURL reports whether a text begins as a URL with a literal password does:
// "wss://user:password@". One that is a placeholder is none.
func InURL(text string) bool {
	m := authority.FindStringSubmatch(strings.TrimSpace(text))
	return m != nil && placeholder.ReplaceAllString(m[1], "") != ""
}
