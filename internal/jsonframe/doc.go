// Package jsonframe reads and writes the messages of platforms that are described
// by configuration: where a message holds what (Pointer, Layout), and what is sent
// with values filled in (Template).
//
// It promises that no value can break out of its place in a template, and that no
// bytes from outside, JSON or not, whole or cut short, make it fail. It knows no
// transport and no channel type.
package jsonframe
