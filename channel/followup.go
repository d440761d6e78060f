package channel

import "time"

const (
	// FollowUpDefault is how long a follow-up address is used whose end the platform
	// does not say: the shortest that a large platform grants is fifteen minutes.
	FollowUpDefault = 15 * time.Minute
	// FollowUpMost is how long one is kept at most, whatever is said of it. The longest
	// that a large platform grants is half an hour.
	FollowUpMost = 24 * time.Hour
)

// FollowUp is where a platform takes the answers to one event, for a while: the
// address of a pressed button, a token for its reply. Whoever has it can speak there
// in the bot's name, so it is a secret: the type takes it out of Raw, and it stands in
// no envelope, log, trace or answer of the API. The store keeps it sealed.
type FollowUp struct {
	Address Secret    // empty = there is none
	Expires time.Time // zero = FollowUpDefault after the event was heard
}

// Until is when the address is of no use any more, for an event that was heard at
// now.
func (f FollowUp) Until(now time.Time) time.Time {
	switch {
	case f.Expires.IsZero():
		return now.Add(FollowUpDefault)
	case f.Expires.After(now.Add(FollowUpMost)):
		return now.Add(FollowUpMost)
	default:
		return f.Expires
	}
}
