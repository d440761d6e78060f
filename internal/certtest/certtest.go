// Package certtest makes certificates for tests: of the loopback, each by an authority
// of its own.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"time"
)

// Pair is a certificate, which is its own authority, and its key, both as PEM. It counts
// for an hour.
type Pair struct {
	Serial    int64
	Cert, Key []byte
}

// New makes a pair for 127.0.0.1.
func New(serial int64) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return Pair{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{serial, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}, nil
}

// Authority is who trusts the pair and nobody else.
func (p Pair) Authority() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.Cert)
	return pool
}

// Put replaces the files of a certificate and its key, each as a whole.
func (p Pair) Put(cert, key string) error {
	put := func(path string, content []byte) error {
		return errors.Join(os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path))
	}
	return errors.Join(put(cert, p.Cert), put(key, p.Key))
}
