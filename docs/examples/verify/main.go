// Command verify is a program that takes only events that Leasehold signed: it prints the id
// of each.
//
//	go run ./docs/examples/verify KEYFILE [ADDRESS:PORT]
//
// The official libraries of Standard Webhooks do what verified does, in many languages.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	tolerance = 5 * time.Minute // an older request may be a recorded one
	bodyMax   = 16 << 20        // bytes: nobody fills our memory
)

// verified reports whether a request with this body was signed with the key.
func verified(secret []byte, h http.Header, body []byte) bool {
	seconds, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(fmt.Appendf(nil, "%s.%d.", h.Get("webhook-id"), seconds))
	mac.Write(body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for signature := range strings.FieldsSeq(h.Get("webhook-signature")) {
		if hmac.Equal([]byte(signature), []byte(expected)) {
			return true
		}
	}
	return false
}

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: verify KEYFILE [ADDRESS:PORT]")
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(string(text)), "whsec_"))
	if err != nil {
		log.Fatalf("%s is no signing key: %v", os.Args[1], err)
	}
	address := "127.0.0.1:3000"
	if len(os.Args) > 2 {
		address = os.Args[2]
	}
	server := &http.Server{Addr: address, ReadTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
		if err != nil || !verified(secret, r.Header, body) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		log.Println("verified", r.Header.Get("webhook-id"))
		w.WriteHeader(http.StatusNoContent)
	})}
	log.Fatal(server.ListenAndServe())
}
