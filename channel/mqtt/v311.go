package mqtt

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// v311 is the codec of version 3.1.1.
type v311 struct{}

var _ codec = v311{}

func (v311) repeatsRetained() bool { return true }

func (v311) goodbye() []byte { return []byte{byte(disconnect) << 4, 0} }

func (v311) connect(p *plan, clientID string) ([]byte, error) {
	x := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	x.ProtocolName, x.ProtocolVersion = "MQTT", 4
	x.ClientIdentifier, x.CleanSession, x.Keepalive = clientID, p.expiry == 0, uint16(p.keepAlive/time.Second)
	x.UsernameFlag, x.Username = p.username != "", p.username
	x.PasswordFlag, x.Password = p.password != "", []byte(p.password)
	return encode311(x)
}

func (v311) subscribe(id uint16, filters []string, qos byte) ([]byte, error) {
	x := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	x.MessageID, x.Topics, x.Qoss = id, filters, bytes.Repeat([]byte{qos}, len(filters))
	return encode311(x)
}

func (v311) unsubscribe(id uint16, filters []string) ([]byte, error) {
	x := packets.NewControlPacket(packets.Unsubscribe).(*packets.UnsubscribePacket)
	x.MessageID, x.Topics = id, filters
	return encode311(x)
}

func (v311) publish(id uint16, topic string, payload []byte) ([]byte, error) {
	x := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	x.MessageID, x.Qos, x.TopicName, x.Payload = id, 1, topic, payload
	return encode311(x)
}

func encode311(x packets.ControlPacket) ([]byte, error) {
	var b bytes.Buffer
	if err := x.Write(&b); err != nil {
		return nil, fmt.Errorf("write a packet: %w", err)
	}
	return b.Bytes(), nil
}

func (v311) decode(f frame) (packet, error) {
	p := packet{kind: f.kind}
	in := bytes.NewBuffer(f.body)
	header := packets.FixedHeader{MessageType: byte(f.kind), Dup: f.flags&8 != 0, Qos: f.flags >> 1 & 3, Retain: f.flags&1 != 0, RemainingLength: len(f.body)}
	size, exact := -1, true // of the body, where the protocol fixes it
	var err error
	switch f.kind {
	case connack:
		size = 2
		x := packets.ConnackPacket{FixedHeader: header}
		err = x.Unpack(in)
		p.code, p.present, p.limits = x.ReturnCode, x.SessionPresent, limits{qos: 2}
	case publish:
		x := packets.PublishPacket{FixedHeader: header}
		if err = x.Unpack(in); err != nil {
			break
		}
		p.id, p.message = x.MessageID, message{topic: x.TopicName, payload: x.Payload, qos: x.Qos, dup: x.Dup, retain: x.Retain}
		return p, p.check(p.id)
	case puback, pubrec, pubrel, pubcomp, unsuback: // they are alike
		size = 2
		x := packets.PubackPacket{FixedHeader: header}
		err = x.Unpack(in)
		p.id = x.MessageID
	case suback:
		size, exact = 3, false
		x := packets.SubackPacket{FixedHeader: header}
		err = x.Unpack(in)
		p.id, p.codes = x.MessageID, x.ReturnCodes
	case pingresp:
		size = 0
	case disconnect: // no broker's in this version, but some say it before they close
		return p, io.EOF
	default:
		return p, violation("a packet of type %d, which a broker never sends", f.kind)
	}
	if err != nil {
		return p, violation("a packet of type %d that cannot be read: %v", f.kind, cut(err))
	}
	if size >= 0 && (len(f.body) < size || exact && len(f.body) > size) { // the codec takes a short one for zeros
		return p, violation("a packet of type %d with %d bytes", f.kind, len(f.body))
	}
	return p, nil
}

func (v311) meaning(code byte) string {
	if code == codeError {
		return "failure" // the one that a SUBACK knows
	}
	if err := packets.ConnErrors[code]; err != nil && code <= packets.ErrRefusedNotAuthorised {
		return err.Error()
	}
	return unknownReason
}

func (v311) refusal(k kind, code byte) byte {
	switch {
	case k == suback && code >= codeError:
		return codeUnauthorised
	case k == suback:
		return code
	case code == packets.ErrRefusedBadProtocolVersion:
		return codeVersion
	case code == packets.ErrRefusedIDRejected:
		return codeClientID
	case code == packets.ErrRefusedBadUsernameOrPassword:
		return codeBadPassword
	case code == packets.ErrRefusedNotAuthorised:
		return codeUnauthorised
	default: // the server is unavailable; more there are not
		return codeError
	}
}
