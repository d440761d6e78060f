// Package secretname tells a secret that stands in a config as a literal by where it
// stands: under the name of a header that carries credentials, as the password of a
// URL, or among the arguments of a program. The config file and the API refuse the
// same ones because both ask here.
//
// It is a guess from names. What a channel type declares as a secret is refused by
// its type, whatever its name.
package secretname

import (
	"regexp"
	"slices"
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

// InArguments finds the first argument of a command that holds a literal secret:
// everybody on the machine can read the arguments of a program. It is a URL with a
// password, what stands under a name that carries credentials (--token=x, --token x,
// TOKEN=x, "Authorization: x"), or a token that says itself what it is.
func InArguments(args []string) (index int, found bool) {
	for i, arg := range args {
		name, value, assigned := cutArgument(arg)
		switch {
		case InURL(arg), InURL(value), announced.MatchString(arg), announced.MatchString(value):
			return i, true
		case !carries(name):
		case assigned:
			if isLiteral(value) {
				return i, true
			}
		case strings.HasPrefix(arg, "-") && i+1 < len(args) && isLiteral(args[i+1]):
			return i + 1, true
		}
	}
	return 0, false
}

// announced are the beginnings by which platforms mark their tokens: Slack, GitHub,
// GitLab, Standard Webhooks, AWS, and JSON Web Tokens.
var announced = regexp.MustCompile(`^(?:Bearer )?(xox[a-z]-|xapp-|gh[a-z]_|github_pat_|glpat-|whsec_|AKIA[0-9A-Z]{12}|eyJ[A-Za-z0-9_-]{8,}\.)`)

var headerLike = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*: *[^ ]`)

// cutArgument splits --name=value, NAME=value and "Name: value"; assigned: there is
// a value in it.
func cutArgument(arg string) (name, value string, assigned bool) {
	name, value, assigned = strings.Cut(arg, "=")
	if !assigned && headerLike.MatchString(arg) {
		name, value, assigned = strings.Cut(arg, ":")
	}
	return strings.TrimLeft(name, "-"), strings.TrimSpace(value), assigned
}

// carries reports whether an argument of this name holds a credential: its last word
// is one. --max-tokens and --token-file hold something else, and a name with a blank
// is a sentence.
func carries(name string) bool {
	name = strings.ToLower(name)
	return !strings.ContainsAny(name, " \t\n/") && slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(name, w) })
}

// isLiteral: neither nothing, nor another flag, a file, or a variable for the program
// to expand.
func isLiteral(value string) bool {
	return value != "" && !strings.ContainsAny(value[:1], "-/.~@$%")
}

// InURL reports whether a text begins as a URL with a literal password does:
// "wss://user:password@". One that is a placeholder is none.
func InURL(text string) bool {
	m := authority.FindStringSubmatch(strings.TrimSpace(text))
	return m != nil && placeholder.ReplaceAllString(m[1], "") != ""
}

// queryWords are names of parameters that carry credentials, beside those of headers.
var queryWords = []string{"key", "auth", "sig", "signature", "ticket", "pass", "code"}

var anyURL = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// InQuery finds the first parameter in the query of a URL that holds a literal secret,
// by its name or by what the value says of itself. It is a weaker guess than the
// others: a program may call anything a key. A value from a placeholder is none.
func InQuery(text string) (name string, found bool) {
	text = strings.TrimSpace(text)
	_, query, has := strings.Cut(text, "?")
	if !has || !anyURL.MatchString(text) {
		return "", false
	}
	query, _, _ = strings.Cut(query, "#")
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if placeholder.ReplaceAllString(value, "") == "" {
			continue
		}
		if carries(name) || slices.Contains(queryWords, strings.ToLower(name)) || announced.MatchString(value) {
			return name, true
		}
	}
	return "", false
}
