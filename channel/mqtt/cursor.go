package mqtt

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"leasehold/channel"
)

// position is the cursor: what must outlive a connection. It belongs to one session
// of one broker, but for Client, which names the session.
type position struct {
	Client string          `json:"client,omitempty"` // the random part of the client id
	Place  string          `json:"place"`            // the broker and the client id: whose session the rest is about
	Known  bool            `json:"known,omitempty"`  // the broker has a session of ours
	Early  int             `json:"early,omitempty"`  // connections in a row that ended soon after they began
	Topics map[string]byte `json:"topics,omitempty"` // what the session subscribes to, with the QoS asked for
	Heard  heard           `json:"heard,omitzero"`

	run  string // the first part of the ids that this term makes
	made uint64 // how many it has made
}

// resume reads the cursor. Without a configured client id it makes one, which is
// stored before the broker hears it: a session under a name that nobody remembers
// would keep its messages for nobody.
//
// The name holds eight random digits where the store's own id would stand if the
// link told it: kept in the cursor they serve the same, being the same on every
// node of a store and others in every other store.
func (p *plan) resume(ctx context.Context, link *channel.Link) (*position, error) {
	pos := &position{run: random(6)}
	if cursor := link.Cursor(); len(cursor) > 0 && json.Unmarshal(cursor, pos) != nil {
		link.Notice("cursor", "the stored position is not of this type; what the broker repeats may be stored twice")
		pos = &position{run: pos.run}
	}
	id := p.clientID
	if id == "" {
		fresh := pos.Client == ""
		if fresh {
			pos.Client = random(4)
		}
		id = "leasehold-" + link.Installation() + "-" + pos.Client
		if fresh {
			pos.settle(p.server + "/" + id)
			if err := link.Accept(ctx, channel.Batch{Cursor: pos.encode(), Urgent: true}); err != nil {
				return nil, fmt.Errorf("store the client id: %w", err)
			}
		}
	}
	pos.settle(p.server + "/" + id)
	return pos, nil
}

// settle forgets what is about another session.
func (pos *position) settle(place string) {
	if pos.Place != place {
		*pos = position{Client: pos.Client, Place: place, run: pos.run}
	}
}

func random(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// forget empties what a session remembers.
func (pos *position) forget() { pos.Topics, pos.Heard = nil, heard{} }

// encode writes the cursor.
func (pos *position) encode() []byte {
	head := *pos
	head.Heard = heard{}
	b, err := json.Marshal(head)
	if err != nil {
		panic(err) // numbers, and strings that came out of JSON or were checked
	}
	if len(pos.Heard.all) == 0 {
		return b
	}
	b = append(b[:len(b)-1], `,"heard":`...)
	return append(pos.Heard.append(b), '}')
}

// identify is the id of a message's event: that of the message that it repeats, or
// a new one. Two messages are one event only when the broker says that the second
// may be the first, and packet id, topic and payload agree.
func (pos *position) identify(id uint16, m message) string {
	if m.dup {
		if known, ok := pos.Heard.recall(id); ok {
			return known.eventID(m)
		}
	}
	pos.made++
	fresh := memory{id, pos.run, pos.made}
	pos.Heard.add(fresh, m.dup)
	return fresh.eventID(m)
}
