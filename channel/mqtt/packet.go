package mqtt

import (
	"fmt"
)

// kind is a packet's type, as the first half of its first byte says it.
type kind byte

const (
	connect     kind = 1
	connack     kind = 2
	publish     kind = 3
	puback      kind = 4
	pubrec      kind = 5
	pubrel      kind = 6
	pubcomp     kind = 7
	subscribe   kind = 8
	suback      kind = 9
	unsubscribe kind = 10
	unsuback    kind = 11
	pingreq     kind = 12
	pingresp    kind = 13
	disconnect  kind = 14
)

// packet is what a broker said, in either version.
type packet struct {
	kind   kind
	id     uint16
	code   byte   // the broker's reason
	codes  []byte // of a SUBACK, one for each topic
	reason string // its words
	server string // another one that it refers to

	present bool   // a CONNACK's: the broker has our session
	limits  limits // a CONNACK's

	message // a PUBLISH's
}

// message is what was published.
type message struct {
	topic       string
	payload     []byte
	qos         byte
	dup, retain bool
	contentType string
	properties  []pair
}

// pair is a user property; names may repeat.
type pair struct{ name, value string }

// limits are what a broker asks of us.
type limits struct {
	keepAlive uint16 // seconds; 0 = as we said
	inFlight  uint16 // publications that may be unacknowledged; 0 = no bound
	size      uint32 // of a packet; 0 = no bound
	qos       byte   // the highest that it takes
}

// codec writes and reads the packets of one version. It keeps nothing.
type codec interface {
	connect(p *plan, clientID string) ([]byte, error)
	subscribe(id uint16, filters []string, qos byte) ([]byte, error)
	unsubscribe(id uint16, filters []string) ([]byte, error)
	publish(id uint16, topic string, payload []byte) ([]byte, error)
	goodbye() []byte
	// decode reads a whole packet, which may hold on to the frame's bytes. io.EOF: the
	// broker ends the connection and does not say why.
	decode(f frame) (packet, error)
	// repeatsRetained is whether to subscribe anew brings retained messages again.
	repeatsRetained() bool
	// meaning is a reason in the protocol's own words.
	meaning(code byte) string
	// refusal is the code of a CONNACK, and of a topic in a SUBACK, as version 5 has it.
	refusal(k kind, code byte) byte
}

// inFlight is how many messages a broker of version 5 shall send before it waits
// for an acknowledgement: enough for one commit to carry a hundred events.
const inFlight = 100

// acknowledgement is a PUBACK, PUBREC or PUBCOMP of success; the versions write it
// alike.
func acknowledgement(k kind, id uint16) []byte {
	return []byte{byte(k) << 4, 2, byte(id >> 8), byte(id)}
}

func ping() []byte { return []byte{byte(pingreq) << 4, 0} }

// protocolError is what a broker must not say.
type protocolError struct{ what string }

func (e *protocolError) Error() string { return "the broker broke the protocol: " + e.what }

func violation(format string, args ...any) error {
	return &protocolError{fmt.Sprintf(format, args...)}
}

// checkPublish checks what both codecs leave to us.
func (m *message) check(id uint16) error {
	switch {
	case m.qos > 2:
		return violation("a PUBLISH with QoS 3")
	case m.qos > 0 && id == 0:
		return violation("a PUBLISH without a packet id")
	case checkText(m.topic) != nil:
		return violation("a PUBLISH whose topic is empty or no text")
	}
	return nil
}
