// Package engine holds exactly one live connection per installation.
//
// Its one promise: at any instant at most one process runs an installation, and
// nothing that a process writes for an installation counts once another process
// has been granted it. Durable writes are fenced by the lease's epoch in the
// same statement, always. Connections are bounded by trust: a node closes every
// socket before the store could grant its leases to another, and after a pause
// closes them before it does anything else.
//
// A Core decides: a state machine of one node, without goroutines, clocks or
// I/O, so that a simulator can drive it through years of faults. A Supervisor is
// the shell that runs a Core on a real store, real clocks and real channels. A
// Holder does what a grant is for, beside the connection.
//
// Holding is not dialling: a grant is kept through backoff and blocked states,
// so that what was heard is delivered meanwhile. A grant has terms, one per
// build of its channel; a lease has one owner session; a session is one row per
// node, whose absence is death.
package engine
