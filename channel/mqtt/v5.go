package mqtt

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

// v5 is the codec of version 5.
type v5 struct{}

var _ codec = v5{}

func (v5) repeatsRetained() bool { return false } // retain handling 1 says so

func (v5) refusal(_ kind, code byte) byte { return code }

func (v5) goodbye() []byte { return []byte{byte(disconnect) << 4, 0} }

func (v5) connect(p *plan, clientID string) ([]byte, error) {
	window, size := uint16(inFlight), uint32(frameMax)
	return encode(packets.CONNECT, 0, &packets.Connect{
		ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: clientID, KeepAlive: uint16(p.keepAlive / time.Second),
		UsernameFlag: p.username != "", Username: p.username, PasswordFlag: p.password != "", Password: []byte(p.password),
		Properties: &packets.Properties{SessionExpiryInterval: &p.expiry, ReceiveMaximum: &window, MaximumPacketSize: &size},
	})
}

func (v5) subscribe(id uint16, filters []string, qos byte) ([]byte, error) {
	s := &packets.Subscribe{PacketID: id, Properties: &packets.Properties{}}
	for _, filter := range filters {
		s.Subscriptions = append(s.Subscriptions, packets.SubOptions{
			Topic: filter, QoS: qos, RetainHandling: packets.RetainSendOnSubscribeIfNew,
			NoLocal:           !strings.HasPrefix(filter, sharePrefix), // our own messages are none to us; on a shared one it is forbidden
			RetainAsPublished: false,                                   // the flag says "you have just subscribed"
		})
	}
	return encode(packets.SUBSCRIBE, 2, s)
}

func (v5) unsubscribe(id uint16, filters []string) ([]byte, error) {
	return encode(packets.UNSUBSCRIBE, 2, &packets.Unsubscribe{PacketID: id, Topics: filters, Properties: &packets.Properties{}})
}

func (v5) publish(id uint16, topic string, payload []byte) ([]byte, error) {
	return encode(packets.PUBLISH, 0, &packets.Publish{PacketID: id, QoS: 1, Topic: topic, Payload: payload, Properties: &packets.Properties{}})
}

func encode(kind, flags byte, content packets.Packet) ([]byte, error) {
	var b bytes.Buffer
	c := &packets.ControlPacket{FixedHeader: packets.FixedHeader{Type: kind, Flags: flags}, Content: content}
	if _, err := c.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("write a packet: %w", err)
	}
	return b.Bytes(), nil
}

func (v5) decode(f frame) (p packet, err error) {
	defer func() {
		if r := recover(); r != nil { // where an int has 32 bits the codec takes some lengths for negative
			err = violation("a packet of type %d that cannot be read: %v", f.kind, r)
		}
	}()
	p = packet{kind: f.kind}
	in := bytes.NewBuffer(f.body)
	switch f.kind {
	case connack:
		if len(f.body) == 2 { // as version 3.1.1 writes it, for a version that it does not know
			return packet{kind: connack, code: packets.ConnackUnsupportedProtocolVersion}, nil
		}
		x := packets.Connack{Properties: &packets.Properties{}}
		err = x.Unpack(in)
		p.code, p.present, p.reason, p.server = x.ReasonCode, x.SessionPresent, x.Properties.ReasonString, x.Properties.ServerReference
		p.limits = limitsOf(x.Properties)
	case publish:
		x := packets.Publish{Properties: &packets.Properties{}, QoS: f.flags >> 1 & 3, Duplicate: f.flags&8 != 0, Retain: f.flags&1 != 0}
		if err = x.Unpack(in); err != nil {
			break
		}
		if x.Properties.TopicAlias != nil {
			return p, violation("a topic alias, which we did not allow")
		}
		p.id, p.message = x.PacketID, messageOf(&x)
		return p, p.check(p.id)
	case puback, pubrec, pubrel, pubcomp: // they are alike
		x := packets.Puback{Properties: &packets.Properties{}}
		err = x.Unpack(in)
		p.id, p.code, p.reason = x.PacketID, x.ReasonCode, x.Properties.ReasonString
	case suback, unsuback:
		x := packets.Suback{Properties: &packets.Properties{}}
		err = x.Unpack(in)
		p.id, p.codes, p.reason = x.PacketID, x.Reasons, x.Properties.ReasonString
	case disconnect:
		x := packets.Disconnect{Properties: &packets.Properties{}}
		if len(f.body) > 0 {
			err = x.Unpack(in)
		}
		p.code, p.reason, p.server = x.ReasonCode, x.Properties.ReasonString, x.Properties.ServerReference
	case pingresp:
	default:
		return p, violation("a packet of type %d, which a broker never sends", f.kind)
	}
	if err != nil {
		return p, violation("a packet of type %d that cannot be read: %v", f.kind, cut(err))
	}
	return p, nil
}

// cut says what a short packet is; the codec calls it the end of its stream.
func cut(err error) error {
	if err == io.EOF { //nolint:errorlint // the codec returns it bare
		return io.ErrUnexpectedEOF
	}
	return err
}

func limitsOf(x *packets.Properties) limits {
	l := limits{qos: 2}
	if x.ServerKeepAlive != nil {
		l.keepAlive = *x.ServerKeepAlive
	}
	if x.ReceiveMaximum != nil {
		l.inFlight = *x.ReceiveMaximum
	}
	if x.MaximumPacketSize != nil {
		l.size = *x.MaximumPacketSize
	}
	if x.MaximumQOS != nil {
		l.qos = *x.MaximumQOS
	}
	return l
}

func messageOf(x *packets.Publish) message {
	m := message{
		topic: x.Topic, payload: x.Payload, qos: x.QoS, dup: x.Duplicate, retain: x.Retain, contentType: x.Properties.ContentType,
	}
	for _, u := range x.Properties.User {
		m.properties = append(m.properties, pair{u.Key, u.Value})
	}
	return m
}

func (v5) meaning(code byte) string {
	for _, said := range []string{
		(&packets.Disconnect{ReasonCode: code}).Reason(), (&packets.Connack{ReasonCode: code}).Reason(), (&packets.Suback{Reasons: []byte{code}}).Reason(0),
	} {
		if said, _, explained := strings.Cut(said, " - "); explained {
			return strings.ToLower(said)
		}
	}
	return unknownReason
}
