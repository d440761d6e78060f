// Package config reads the configuration: TOML files and the environment into
// plain structs, or every fault of them at once.
//
// It promises that a Config that Load returns is complete and believed: every key
// was known, had the right type and an allowed value, every name it refers to
// exists, and every path in it is absolute. When anything is wrong, nothing is
// returned but the faults, each with its file, line and column, the key, what is
// wrong and, where it can be told, what to write instead.
//
// Secrets stand in the files as references ({ env = "X" }, { file = "…" },
// { credential = "…" }) and stay references here; Secrets resolves one when its
// value is needed. No message of this package repeats a string of the file except
// a name: a key, an id, a type, a target.
//
// The field comments of the structs are the manual of the keys. What the package
// is not: it opens no store, knows no channel type (the types' config structs are
// handed in) and decides nothing; app turns a Config into each package's options.
//
// The tags that the keys carry:
//
//	toml:"name"        the key; json:"name" in the config struct of a channel type
//	default:"30s"      the default, written as in the environment
//	required:"true"    the key must be there; channel:"required" in a channel type
//	positive:"true"    zero and below are refused
//	min:"1" max:"9"    bounds of a number or a duration, both allowed
//	oneof:"a b"        the allowed values; later:"c" are those of a later version
//	reload:"true"      a change takes effect while the program runs; else it needs a restart
//	later:"true"       the key, or every key of the table, is not in this version
package config
