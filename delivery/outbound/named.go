package outbound

import (
	"encoding/json"
	"fmt"

	"leasehold/internal/eventid"
)

// Named is a message of ours, of the same installation, that another one names as what
// it is about, as it is at that moment.
type Named struct {
	State   State
	Receipt []byte // see EncodeReceipt; empty = none
}

// On is the platform's id of the message id, which is ours; until it was sent there is
// none. why says why there never will be one, or that there is none yet. nil = there is
// no such message.
func (n *Named) On(id string) (platform, why string) {
	const about = "it is about message " // it is read in a list, away from the message
	switch {
	case n == nil:
		return "", fmt.Sprintf(about+"%s, which is not one of this installation, or past its retention", id)
	case !n.State.Done():
		return "", fmt.Sprintf(about+"%s, which was not sent yet", id)
	case n.State == Unknown:
		return "", fmt.Sprintf(about+"%s, of which nobody knows whether it was sent", id)
	case n.State != Sent && len(n.Receipt) > 0:
		return "", fmt.Sprintf(about+"%s, of which only a part was sent: it is %s", id, n.State)
	case n.State != Sent:
		return "", fmt.Sprintf(about+"%s, which was never sent: it is %s", id, n.State)
	}
	var r Receipt
	if err := json.Unmarshal(n.Receipt, &r); err != nil || r.MessageID == "" {
		return "", fmt.Sprintf(about+"%s, of which the platform gave no id when it took it", id)
	}
	return r.MessageID, ""
}

// resolve puts the platform's id in the place of ours where m names a message that we
// sent, and says why it cannot be sent where there is none. The message that is named
// has gone before: it stands before m in the same conversation.
func (m *TakenUp) resolve() (why string) {
	if m.Named == nil && !eventid.IsMessage(m.MessageID) {
		return ""
	}
	m.MessageID, why = m.Named.On(m.MessageID)
	return why
}
