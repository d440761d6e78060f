package jsonframe

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Merge puts a patch over a document, as RFC 7396 does: objects are merged key by
// key, null takes a key out, anything else takes the place of what was there.
// Numbers stay as they are written; the order of keys is lost. Both must be objects.
func Merge(doc, patch []byte) ([]byte, error) {
	var into, from map[string]json.RawMessage
	if json.Unmarshal(doc, &into) != nil || into == nil {
		return nil, errors.New("there is no JSON object to merge it into")
	}
	if json.Unmarshal(patch, &from) != nil || from == nil {
		return nil, errors.New("it is no JSON object")
	}
	mergeInto(into, from)
	return marshal(into), nil
}

// marshal writes an object of valid values, with <, > and & as they are.
func marshal(table map[string]json.RawMessage) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(table) // what was decoded is valid
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func mergeInto(into, from map[string]json.RawMessage) {
	for key, value := range from {
		var table map[string]json.RawMessage
		switch err := json.Unmarshal(value, &table); {
		case err != nil: // no object
			into[key] = value
		case table == nil: // null
			delete(into, key)
		default:
			var before map[string]json.RawMessage
			if json.Unmarshal(into[key], &before) != nil || before == nil {
				before = map[string]json.RawMessage{} // nulls have nothing to take out, and go
			}
			mergeInto(before, table)
			into[key] = marshal(before)
		}
	}
}
