// Package seal encrypts small values at rest under a master key: AES-256-GCM of the
// standard library, with a random nonce for each value.
//
// A sealed value names the key that it was sealed with, and opens only as what it was
// sealed as: the kind and the name of its owner are part of what is authenticated, so
// that nobody who can write to a database makes one owner's value another's.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	// Prefix is how the text of a master key says what it is.
	Prefix = "lhmk_"
	// keySize is that of AES-256, in bytes.
	keySize = 32
	// idSize is how much of a key's digest names it, in bytes: few keys are ever at hand
	// together, and its 16 letters can be read out over a telephone.
	idSize = 8
	// version is the first byte of a sealed value.
	version = 1
)

// ErrForged is in the error of a value that its key does not open: it was changed, or
// is another owner's.
var ErrForged = errors.New("it was changed, or belongs to another owner")

// Owner is what a value belongs to.
type Owner struct{ Kind, Name string }

// Key is a master key. The zero Key is none.
type Key struct {
	secret *[keySize]byte // behind a pointer: fmt shows the address
	id     [idSize]byte
}

// NewKey makes a random key.
func NewKey() Key {
	secret := new([keySize]byte)
	_, _ = rand.Read(secret[:]) // it never fails: it ends the program instead
	return keyOf(secret)
}

func keyOf(secret *[keySize]byte) Key {
	k := Key{secret: secret}
	sum := hmac.New(sha256.New, secret[:])
	_, _ = sum.Write([]byte("leasehold: the id of a master key")) // a hash takes all
	copy(k.id[:], sum.Sum(nil))
	return k
}

// ParseKey reads the text of a key. Its error repeats nothing of the text.
func ParseKey(text string) (Key, error) {
	encoded, ok := strings.CutPrefix(text, Prefix)
	b, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(b) != keySize {
		return Key{}, fmt.Errorf("is no master key: it must be %s and %d bytes in base64", Prefix, keySize)
	}
	return keyOf((*[keySize]byte)(b)), nil
}

// Text is the key as ParseKey reads it: a secret.
func (k Key) Text() string { return Prefix + base64.StdEncoding.EncodeToString(k.secret[:]) }

// ID names the key, and tells nothing of it.
func (k Key) ID() string {
	if k.secret == nil {
		return ""
	}
	return hex.EncodeToString(k.id[:])
}

// Seal encrypts plain for an owner.
func (k Key) Seal(o Owner, plain []byte) []byte {
	head := append([]byte{version}, k.id[:]...)
	return k.aead().Seal(head, nil, plain, bound(head, o))
}

// Open decrypts what Seal made for the same owner. The error of a value that was
// sealed with another key names both; ErrForged is in that of one that is not whole.
func (k Key) Open(o Owner, sealed []byte) ([]byte, error) {
	switch id := KeyID(sealed); {
	case id == "":
		return nil, fmt.Errorf("open %s %s: it is no sealed value", o.Kind, o.Name)
	case id != k.ID():
		return nil, fmt.Errorf("open %s %s: it was sealed with master key %s, not %s", o.Kind, o.Name, id, k.ID())
	}
	head := sealed[:1+idSize]
	plain, err := k.aead().Open(nil, nil, sealed[len(head):], bound(head, o))
	if err != nil {
		return nil, fmt.Errorf("open %s %s: %w", o.Kind, o.Name, ErrForged)
	}
	return plain, nil
}

// KeyID is the id of the key that a value was sealed with; "" = it is no sealed value.
func KeyID(sealed []byte) string {
	if len(sealed) < 1+idSize || sealed[0] != version {
		return ""
	}
	return hex.EncodeToString(sealed[1 : 1+idSize])
}

func (k Key) aead() cipher.AEAD { return gcm(k.secret[:]) }

// gcm takes a key of the right size: nothing else can fail.
func gcm(secret []byte) cipher.AEAD {
	block, err := aes.NewCipher(secret)
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return aead
}

// bound is what a sealed value is bound to beside its key: each part with its length,
// so that no two owners are written alike.
func bound(head []byte, o Owner) []byte {
	b := append([]byte{}, head...)
	for _, part := range []string{o.Kind, o.Name} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	return b
}
