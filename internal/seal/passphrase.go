package seal

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// rounds of PBKDF2 over SHA-256: what OWASP names for it since 2023. They take a
	// quarter of a second, once for a backup and once for a guess.
	rounds = 600_000
	// roundsMax bounds what a forged value makes us compute.
	roundsMax = 100 * rounds
	saltSize  = 16
	// MinPassphrase is the shortest passphrase that is taken, in bytes. Whoever has the
	// value may guess as long as he likes.
	MinPassphrase = 12
)

// ErrPassphrase is in the error of a value that the passphrase does not open.
var ErrPassphrase = errors.New("the passphrase is another one, or the value was changed")

// Lock encrypts a key under a passphrase, so that it can travel with what it opens.
func (k Key) Lock(passphrase string) ([]byte, error) {
	if len(passphrase) < MinPassphrase {
		return nil, fmt.Errorf("the passphrase must have at least %d characters", MinPassphrase)
	}
	return k.lock(passphrase, rounds)
}

func (k Key) lock(passphrase string, n uint32) ([]byte, error) {
	head := binary.BigEndian.AppendUint32([]byte{version}, n)
	head = append(head, make([]byte, saltSize)...)
	_, _ = rand.Read(head[5:]) // it never fails: it ends the program instead
	secret, err := stretch(passphrase, head)
	if err != nil {
		return nil, err
	}
	return gcm(secret).Seal(head, nil, k.secret[:], head), nil
}

// Unlock is the key that Lock encrypted. ErrPassphrase: not with this passphrase.
func Unlock(locked []byte, passphrase string) (Key, error) {
	const size = 1 + 4 + saltSize
	if len(locked) < size || locked[0] != version || binary.BigEndian.Uint32(locked[1:]) > roundsMax {
		return Key{}, errors.New("it is no locked master key")
	}
	head := locked[:size]
	secret, err := stretch(passphrase, head)
	if err != nil {
		return Key{}, err
	}
	plain, err := gcm(secret).Open(nil, nil, locked[size:], head)
	if err != nil || len(plain) != keySize {
		return Key{}, ErrPassphrase
	}
	return keyOf((*[keySize]byte)(plain)), nil
}

// stretch makes a key of a passphrase, by the rounds and the salt in head.
func stretch(passphrase string, head []byte) ([]byte, error) {
	return pbkdf2.Key(sha256.New, passphrase, head[5:], int(binary.BigEndian.Uint32(head[1:5])), keySize)
}
