package delivery

import (
	"bytes"
	"encoding/json"

	"leasehold/channel"
)

// rawKey begins what a platform itself sent, which is the last thing that a stored
// event has.
var rawKey = []byte(`,"raw":`)

// unsealed reads a stored event. What the platform sent is most of it, was checked
// when it was stored, and goes on as it is: so it is cut off and not read again, which
// would cost the more the larger it is.
func unsealed(body []byte) (e channel.Event, err error) {
	if head, raw, ok := cutRaw(body); ok && json.Unmarshal(head, &e) == nil {
		e.Raw = raw
		return e, nil
	}
	e = channel.Event{}
	err = json.Unmarshal(body, &e)
	return e, err
}

// cutRaw cuts a stored event before the first thing that looks like the key of raw.
// No text looks so, its quotation marks being escaped, and a key of that name deeper
// within leaves a head that is no JSON. Only an object is cut off: then nothing
// stands behind it, since what could is a text.
func cutRaw(body []byte) (head, raw []byte, ok bool) {
	at := bytes.Index(body, rawKey)
	if at < 0 || !bytes.HasSuffix(body, []byte("}}")) {
		return nil, nil, false
	}
	raw = body[at+len(rawKey) : len(body)-1]
	head = append(append(make([]byte, 0, at+1), body[:at]...), '}')
	return head, raw, raw[0] == '{'
}
