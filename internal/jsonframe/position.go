package jsonframe

import "encoding/json"

// position is a cursor as stored: where in which stream.
type position struct {
	Place string          `json:"place"`
	At    json.RawMessage `json:"at"`
}

// Cursor is a position in the stream of a place, to be stored: at is a JSON scalar.
func Cursor(place string, at json.RawMessage) []byte {
	b, err := json.Marshal(position{place, at})
	if err != nil {
		return nil // at is a scalar of valid JSON
	}
	return b
}

// Position is what Cursor stored, nil when there is none for this place: a cursor
// of another address says nothing here. An empty string is no position either.
func Position(place string, cursor []byte) json.RawMessage {
	var p position
	if json.Unmarshal(cursor, &p) != nil || p.Place != place {
		return nil
	}
	return Pointer{}.Scalar(p.At)
}
