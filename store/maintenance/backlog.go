package maintenance

// Waiting is how much waits for delivery: events of which at least one delivery is
// pending, each counted once.
type Waiting struct {
	Events int64
	Bytes  int64 // of their bodies
}

// GivenUp is what had to give way to newer events.
type GivenUp struct {
	Events     int
	Deliveries int
	Bytes      int64    // of the events' bodies
	Leases     []string // whose deliveries they were, by name
}
