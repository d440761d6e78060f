package outbound

import (
	"context"
	"fmt"

	"leasehold/channel"
	"leasehold/internal/markup"
)

// maxParts is how many messages one may take on its platform: more than anybody reads,
// and few enough to be through before it expires where one a second may be sent.
const maxParts = 100

// compose writes the text of a message as the platform reads it. What takes several
// messages there is fixed in the store before the first of them is sent: another
// process, of another version or with another config, goes on with the same parts. It
// returns false when the message is not to be sent now.
func (j *journey) compose(ctx context.Context, l *Letter) bool {
	if l.Op != "send" && l.Op != "edit" {
		l.Parts = []string{l.Text}
		return true
	}
	var as channel.Writing
	if w, ok := j.sender.(channel.Writer); ok {
		as = w.Writes()
	}
	l.Parts = markup.Text{Words: l.Text, Marked: l.Marked()}.For(as.Markup, as.Unit, as.Limit)
	if len(l.Parts) == 1 {
		return true
	}
	if why := l.cannotSplit(as); why != "" {
		j.end(ctx, End{State: Refused, Error: why})
		return false
	}
	body, err := EncodeLetter(*l)
	if err != nil {
		j.end(ctx, End{State: Refused, Error: err.Error()})
		return false
	}
	return j.end(ctx, End{State: Sending, Body: body})
}

// cannotSplit says why a message that is too long for one cannot be several; "" = it can.
func (l *Letter) cannotSplit(as channel.Writing) string {
	switch {
	case l.Op == "edit":
		return "the text has more than the " + as.String() + " of one message, and an edit is one; shorten it"
	case len(l.Native) > 0:
		return "the text has more than the " + as.String() + " of one message, and what has native is one; shorten it"
	case len(l.Parts) > maxParts:
		return fmt.Sprintf("the text takes %d messages of %s, and at most %d are sent; shorten it", len(l.Parts), as, maxParts)
	}
	return ""
}

// next is the message that is sent now: the whole, or the first part that was not sent.
// Parts behind the first have an id of their own, which is as stable as the message's.
func (l *Letter) next() channel.Message {
	m, n := l.Message, len(l.Taken)
	m.Text = l.Parts[n]
	if n > 0 {
		m.ID = fmt.Sprintf("%s.%d", m.ID, n+1)
	}
	return m
}

// part begins what is said of the part that is sent now; "" = there is only one.
func (l *Letter) part() string {
	if len(l.Parts) == 1 {
		return ""
	}
	return fmt.Sprintf("part %d of %d: ", len(l.Taken)+1, len(l.Parts))
}

// sent is what is written when the platform has taken the part that was next.
func (l *Letter) sent(r channel.Receipt) End {
	e, receipt := End{State: Sent, Count: true}, receiptOf(r)
	if len(l.Parts) > 1 {
		parts := append(l.Taken, receipt)
		receipt = Receipt{MessageID: parts[0].MessageID, Parts: parts}
		if len(parts) < len(l.Parts) {
			e = End{State: Queued}
		}
	}
	var err error
	if e.Receipt, err = plainJSON(receipt); err != nil {
		e.Error = "its receipt was lost: " + err.Error()
		if e.State == Queued { // without it the part would be sent again
			e.State = Unknown
		}
	}
	return e
}
