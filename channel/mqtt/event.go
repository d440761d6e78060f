package mqtt

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"leasehold/channel"
	"leasehold/internal/jsonframe"
)

const (
	typeDevice = "device"
	kindTopic  = "topic"
)

// event makes an event of a message. What is JSON travels as it is, and everything
// else as bytes.
func (m *message) event(id string) *channel.Event {
	e := &channel.Event{
		ID: id, Type: typeDevice, Conversation: channel.Ref{ID: m.topic, Kind: kindTopic}, ContentType: m.contentType,
		Device: &channel.Device{QoS: int(m.qos), Retain: m.retain},
	}
	for _, p := range m.properties {
		if e.Device.Properties == nil {
			e.Device.Properties = map[string]string{}
		}
		e.Device.Properties[p.name] = p.value
	}
	text := utf8.Valid(m.payload)
	if text && json.Valid(m.payload) {
		e.Raw = m.payload
		return e
	}
	e.Payload = m.payload
	if e.ContentType == "" {
		e.ContentType = "application/octet-stream"
		if text {
			e.ContentType = "text/plain; charset=utf-8"
		}
	}
	return e
}

// identify finds the id that a message names itself by; "" = it names none. It is
// the topic's: two devices may both count from one.
func (p *plan) identify(m message) string {
	if p.id == nil {
		return ""
	}
	value := p.id.find(m)
	if value == "" {
		return ""
	}
	return jsonframe.ShortID(m.topic + "#" + value) // no topic holds a #
}

// finder finds what a message names itself by; "" = nothing.
type finder interface{ find(m message) string }

const propertyPrefix = "user-property:"

func parseFinder(dedupe string) (finder, error) {
	if dedupe == "" {
		return nil, nil
	}
	if name, ok := strings.CutPrefix(dedupe, propertyPrefix); ok {
		if name == "" {
			return nil, errors.New("name the property: user-property:NAME")
		}
		return property(name), nil
	}
	p, err := jsonframe.ParsePointer(dedupe)
	if err != nil {
		return nil, fmt.Errorf("want a JSON pointer such as /id, or user-property:NAME: %w", err)
	}
	return pointer(p), nil
}

// property is the name of a user property; the first of that name counts.
type property string

func (name property) find(m message) string {
	for _, p := range m.properties {
		if p.name == string(name) {
			return p.value
		}
	}
	return ""
}

// pointer leads to a string or a number of a payload that is JSON.
type pointer jsonframe.Pointer

func (p pointer) find(m message) string {
	if !json.Valid(m.payload) {
		return ""
	}
	return jsonframe.Text(jsonframe.Pointer(p).Scalar(m.payload))
}
