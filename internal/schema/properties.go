package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Property is one key of an object.
type Property struct {
	Key    string
	Schema *Schema
}

// Properties are an object's keys in order.
type Properties []Property

// MarshalJSON writes an object with its keys in order.
func (p Properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, e := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(e.Key)
		if err != nil {
			return nil, fmt.Errorf("write key %q: %w", e.Key, err)
		}
		value, err := json.Marshal(e.Schema)
		if err != nil {
			return nil, fmt.Errorf("write schema of %q: %w", e.Key, err)
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads an object and keeps the order of its keys.
func (p *Properties) UnmarshalJSON(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("properties are not an object (%v): %w", t, err)
	}
	*p = nil
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return fmt.Errorf("read a key: %w", err)
		}
		e := Property{Key: fmt.Sprint(key), Schema: &Schema{}}
		if err := dec.Decode(e.Schema); err != nil {
			return fmt.Errorf("read schema of %q: %w", e.Key, err)
		}
		*p = append(*p, e)
	}
	return nil
}
