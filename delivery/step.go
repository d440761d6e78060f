package delivery

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
)

// What a person does about a target, by what it said or why it said nothing.
const (
	stepStart       = "start the program behind it; what waits is delivered then"
	stepWait        = "wait, it asks for fewer calls; lower its concurrency if this lasts"
	stepAgain       = "run leasehold targets enable with its name once the program wants events again; what waits is kept"
	stepMoved       = "set the target's url to the final address"
	stepAddress     = "correct the target's url"
	stepAccess      = "correct the credential in the target's headers, then run leasehold reload, or let the program accept it"
	stepSignature   = "let the program know one of the target's signing keys and the right time, or correct the credential in its headers; then run leasehold reload"
	stepClock       = "set the clock, or wait until the network does; what waits is delivered then"
	stepPath        = "correct the path in the target's url, or let the program take POST there"
	stepRefused     = "let the program answer 2xx, also to events that it does not want"
	stepBroken      = "mend the program behind it; what waits is tried again by itself"
	stepSlow        = "let the program answer sooner, or raise the target's timeout"
	stepHeader      = "correct the target's headers, then run leasehold reload; a secret's file must hold one line"
	stepPlain       = "write http:// in the target's url, or let the program speak TLS"
	stepTrust       = "renew the program's certificate, or name its authority in the target's ca_file"
	stepTLS         = "let the program speak TLS 1.2 or later, or write http:// in the target's url; one that wants a certificate needs client_cert"
	stepResolve     = "correct the host in the target's url, or mend its DNS"
	stepCertificate = "name the certificate that the program wants in the target's client_cert and client_key"
	stepDenied      = "correct the target's url, or take the range out of delivery.deny_cidrs"
	stepGzip        = "let the program take Content-Encoding: gzip, or write gzip = false"
	stepCommand     = "install the program, or let Leasehold's user run it; else correct the target's command"
	stepAnswer      = `let the program answer {"text": "…"} or {"messages": [{"text": "…"}]} and no other keys, or nothing; write replies = false to the target if it is no answer to anybody`
	stepUnbatch     = "write batch = 1 for its answers to be sent, or replies = false to be told no more"
	stepBatch       = "nothing, if only some events fail: they go one by one meanwhile; else let the program take batches, or write batch = 1"
	stepLater       = "see what the program waits for; what waits is delivered when it ends with 0 again"
	stepLong        = "let the program end sooner, or raise the target's timeout"
	stepUnacked     = "let the program acknowledge what it pulled, or raise the target's timeout"
	stepGivenBack   = "mend the program that pulls; what it gives back is offered again by itself"
	stepNameless    = "add the target to the config, or drop what waits: leasehold deliveries drop --state pending --target "
)

// stepAfter is what to do about an answer that is no 2xx.
func stepAfter(status int) string {
	switch {
	case status < 400:
		return stepMoved
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return stepAccess
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return stepPath
	case status == http.StatusGone:
		return stepAgain
	case status == http.StatusTooManyRequests:
		return stepWait
	case status < 500:
		return stepRefused
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return stepStart // a proxy says so for a program that is not there
	default:
		return stepBroken
	}
}

// stepWithout is what to do when there was no connection, or none that was kept
// until an answer. What it can tell apart it tells by the error's type; a header
// that cannot be sent has none.
func stepWithout(err error) string {
	if _, ok := errors.AsType[*deniedError](err); ok {
		return stepDenied
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok && name.IsNotFound {
		return stepResolve
	}
	if _, ok := errors.AsType[*net.AddrError](err); ok {
		return stepAddress
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return stepTrust
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return stepPlain
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" { // crypto/tls's, for an alert
		return stepTLS
	}
	if strings.Contains(err.Error(), "invalid header field") {
		return stepHeader
	}
	return stepStart
}

// nextStep is what to do about a target that is not well.
func (t *target) nextStep() string {
	switch {
	case t.state == Disabled:
		return stepAgain
	case t.state == Closed && t.failingSince == 0:
		return ""
	case t.lastStep != "":
		return t.lastStep
	default:
		return stepStart
	}
}
