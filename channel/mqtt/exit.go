package mqtt

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"leasehold/channel"
)

// The reason codes of version 5 by what follows from them. Those that are in none
// of the lists are transient.
const (
	codeVersion      = 0x84
	codeClientID     = 0x85
	codeBadPassword  = 0x86
	codeUnauthorised = 0x87
	codeBadMethod    = 0x8C
	codeStopping     = 0x8B // come again
	codeTakenOver    = 0x8E // another client has our session
	codeTooLarge     = 0x95
	codeQuota        = 0x97
	codeMoved        = 0x9D // for good
	codeTooLong      = 0xA0 // connected for as long as one may be
	codeError        = 0x80 // from here on
)

// rejected are the codes that a person must mend, of a CONNACK and a DISCONNECT.
func rejected(code byte) bool {
	return slices.Contains([]byte{0x81, 0x82, codeVersion, codeClientID, codeBadPassword, codeUnauthorised, 0x8A, codeBadMethod, 0x8F, 0x90, codeTooLarge, 0x9A, 0x9B, 0x9E, 0xA1, 0xA2}, code)
}

// passing are the codes of a topic in a SUBACK that may go by themselves.
func passing(code byte) bool {
	return slices.Contains([]byte{codeError, 0x83, 0x91, codeQuota}, code)
}

// refused classifies a CONNACK that takes us not.
func (s *session) refused(p packet) error {
	said := fmt.Errorf("the broker refuses the connection: %s (%#02x)", s.meaning(p), p.code)
	switch code := s.plan.codec.refusal(connack, p.code); code {
	case codeVersion:
		return channel.Rejected("version", fmt.Errorf("%w; set version to what it speaks, 3.1.1 or 5", said))
	case codeClientID:
		return channel.Rejected("client_id", fmt.Errorf("%w; choose another client_id", said))
	case codeBadPassword, codeUnauthorised, codeBadMethod:
		return channel.Rejected("auth", fmt.Errorf("%w; check username, password and cert_file", said))
	default:
		return byCode(code, fmt.Sprintf("code_%#02x", p.code), said)
	}
}

// dismissed classifies a DISCONNECT of the broker.
func (s *session) dismissed(p packet) error {
	said := fmt.Errorf("the broker ended the connection: %s (%#02x)", s.meaning(p), p.code)
	switch p.code {
	case codeTakenOver:
		return s.superseded(said)
	case codeUnauthorised:
		return channel.Rejected("auth", fmt.Errorf("%w; check username, password and what the account may do", said))
	case 0, codeStopping, codeTooLong:
		return channel.Recycle(said)
	}
	return byCode(p.code, fmt.Sprintf("code_%#02x", p.code), said)
}

func byCode(code byte, reason string, said error) error {
	switch {
	case code == codeMoved:
		return channel.Rejected("moved", fmt.Errorf("%w; set url to the broker's new address", said))
	case rejected(code):
		return channel.Rejected(reason, said)
	default:
		return channel.Failed(reason, said)
	}
}

func (s *session) superseded(said error) error {
	return channel.Superseded(fmt.Errorf("%w; give every client that connects as %q a client_id of its own", said, s.clientID))
}

// unknownReason is a reason code that no version has.
const unknownReason = "no reason that the protocol knows"

// meaning is what a packet's code says, with the broker's own words.
func (s *session) meaning(p packet) string {
	said := s.plan.codec.meaning(p.code)
	if p.reason != "" {
		said += ": " + p.reason
	}
	if p.server != "" {
		said += ", use " + p.server
	}
	return s.plan.words.Show(said)
}

const (
	// early is how soon after it took us a broker must close the connection without
	// a word for it to be a sign of another client with our id: some brokers tell
	// neither why.
	early = 30 * time.Second
	// earlyTries is how often in a row: one may be a restart, two bad luck.
	earlyTries = 3
)

// faulty reports whether the connection ended because of what was said on it, and
// not because somebody closed it.
func faulty(err error) bool {
	_, broke := errors.AsType[*protocolError](err)
	return broke || alerted(err)
}

// broken classifies an end that nobody explained.
func (s *session) broken(err error) error {
	switch {
	case alerted(err) && s.greeted.Load() == 0: // since TLS 1.3 a certificate is refused after the handshake
		return channel.Rejected("tls", fmt.Errorf("the broker refuses our certificate: %w; check cert_file and key_file", err))
	case faulty(err):
		return channel.Failed("protocol", err)
	case s.pos.Early >= earlyTries:
		return s.superseded(fmt.Errorf("the broker closed the connection soon after it took it, %d times in a row, as it does when another client has the same id", s.pos.Early))
	default:
		return channel.Failed("closed", fmt.Errorf("the connection broke: %w", err))
	}
}
