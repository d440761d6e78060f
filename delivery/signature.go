package delivery

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"leasehold/channel"
)

const (
	// keyPrefix is how a key of Standard Webhooks says what it is.
	keyPrefix = "whsec_"
	// keyMin and keyMax bound a key, in bytes: the standard's numbers.
	keyMin, keyMax = 24, 64
	// keySize is that of a key that we make, in bytes: as much as the hash gives.
	keySize = 32
)

// NewSigningKey makes a key for Target.SigningKeys: whsec_ and 32 random bytes in
// base64.
func NewSigningKey() string {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // it never fails: it ends the program instead
	return keyPrefix + base64.StdEncoding.EncodeToString(key)
}

// CheckSigningKey says what keeps a text from being a key for Target.SigningKeys:
// whsec_ and 24 to 64 bytes in base64. It repeats nothing of the text.
func CheckSigningKey(text string) error {
	_, err := parseKey(text)
	return err
}

func parseKey(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, keyPrefix)
	if !ok {
		return nil, errors.New("is no signing key: it must begin with " + keyPrefix)
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || base64.StdEncoding.EncodeToString(key) != encoded { // a line end within, which Go overlooks and others do not
		return nil, fmt.Errorf("is no signing key: what follows %s must be base64 with its padding, on one line", keyPrefix)
	}
	if len(key) < keyMin || len(key) > keyMax {
		return nil, fmt.Errorf("is no signing key: it must have %d to %d bytes (got %d)", keyMin, keyMax, len(key))
	}
	return key, nil
}

// signer signs requests with every key that is active, so that the receiver may know
// any one of them.
type signer [][]byte

// newSigner takes keys that were checked.
func newSigner(keys []channel.Text) signer {
	var s signer
	for _, text := range keys {
		if key, err := parseKey(text.Reveal()); err == nil {
			s = append(s, key)
		}
	}
	return s
}

// sign adds the signatures to the headers of a request, over the id and the timestamp
// in them, and the body before it is compressed: that is what the framework of a
// receiver hands over, and what is JSON. No key: no signature.
func (s signer) sign(h http.Header, body []byte) {
	if len(s) == 0 {
		return
	}
	all := make([]string, len(s))
	for i, key := range s {
		sum := hmac.New(sha256.New, key)
		_, _ = fmt.Fprintf(sum, "%s.%s.", h.Get("Webhook-Id"), h.Get("Webhook-Timestamp")) // a hash takes all
		_, _ = sum.Write(body)
		all[i] = "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil))
	}
	h.Set("Webhook-Signature", strings.Join(all, " "))
}
