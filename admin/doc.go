// Package admin is everything that people and programs ask of a node: handlers
// over HTTP that return errors, and a client for them.
//
// There is one set of handlers and there are several ways in: the local socket
// of the running program, or the caller's own process when nothing runs. A
// handler knows no way in. It declares the reads and writes that it needs of the
// store (Store) and of the running node; whoever wires the program
// supplies both.
package admin
