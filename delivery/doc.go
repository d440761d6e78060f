// Package delivery brings every accepted event to its targets: in order per
// conversation, at least once, until it is taken or given up with a reason that
// people can read and a payload that they can send again.
//
// The Dispatcher is the engine's Holder: it runs lanes for the leases that this
// node holds and for no others, so order is a matter of memory, and every
// outcome it stores is fenced by the lease's epoch. It knows no database (see
// Outbox), no platform and no HTTP server; what it cannot deliver it keeps.
package delivery
