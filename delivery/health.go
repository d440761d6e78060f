package delivery

// health is what the attempts at a target came to. It outlives the circuit: one
// that refuses every event is reached each time, and its circuit stays closed.
type health struct {
	lastError    string // redacted; "" = none failed since the start of the process
	lastErrorAt  instant
	lastStep     string  // what to do about it; "" = the sink does not say
	failingSince instant // the first failure with no success behind it; 0 = the last attempt was taken
}

// note takes in an attempt. One that was broken off says nothing.
func (h *health) note(r Result, now instant) {
	switch r.Outcome {
	case Taken:
		h.failingSince = 0
	case Aborted:
	default:
		h.lastError, h.lastErrorAt, h.lastStep = r.Reason, now, r.NextStep
		if h.failingSince == 0 {
			h.failingSince = now
		}
	}
}
