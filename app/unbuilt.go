package app

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"leasehold/channel"
	"leasehold/config"
)

// unbuilt are the faults that only the types themselves can tell, each at the key
// that it names. A secret that has no value here hides none of them: something
// stands in for it, and what is wrong with that is not told.
func unbuilt(ctx context.Context, c *config.Config, types *channel.Types, resolve channel.Resolver) error {
	var faults config.Faults
	for _, i := range c.Installations {
		spec, ok := types.Lookup(i.Type)
		if !ok {
			continue // config.Load has said so
		}
		missing := map[string]bool{} // keys without a value here
		own := labelOf("installation", i.ID) + ": "
		for _, u := range c.Uses {
			if key, ok := strings.CutPrefix(u.Key, own); ok {
				if _, err := resolve(u.Kind, u.Name); err != nil {
					missing[key] = true
				}
			}
		}
		decoded, err := spec.Decode(i.Config, standIn(resolve))
		if err == nil {
			_, err = decoded.Build(ctx)
		}
		for _, err := range each(err) {
			if !missing[keyIn(err)] {
				faults = append(faults, faultOf(i, err))
			}
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// each are the errors that were joined to err, or err alone.
func each(err error) []error {
	switch joined := err.(type) { //nolint:errorlint // what is wrapped around a list says something of its own
	case nil:
		return nil
	case interface{ Unwrap() []error }:
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, each(one)...)
		}
		return all
	}
	return []error{err}
}

// standIn resolves what has no value to a text that could be a secret.
func standIn(resolve channel.Resolver) channel.Resolver {
	return func(kind, name string) (string, error) {
		if value, err := resolve(kind, name); err == nil {
			return value, nil
		}
		return "stands-in-for-a-secret", nil
	}
}

// keyed is an error of a channel type: the key that is wrong, and what is wrong.
var keyed = regexp.MustCompile(`(?s)^([A-Za-z0-9_.-]+)(\[\d+\])?: (.+)$`)

// keyIn is the key that an error of a type begins with; "" = none.
func keyIn(err error) string {
	if m := keyed.FindStringSubmatch(err.Error()); m != nil {
		return m[1]
	}
	return ""
}

// faultOf is an error of a channel type as a fault of the file, at the key that it
// names when the file sets that, else where the installation begins.
func faultOf(i config.Installation, err error) config.Fault {
	f := config.Fault{File: i.Pos.File, Line: i.Pos.Line, Col: i.Pos.Col, Key: fmt.Sprintf("installation %q", i.ID), Message: err.Error()}
	m := keyed.FindStringSubmatch(err.Error())
	if m == nil {
		return f
	}
	for key := m[1]; key != ""; key = key[:max(0, strings.LastIndexByte(key, '.'))] {
		if pos, set := i.Keys[key]; set {
			f.File, f.Line, f.Col = pos.File, pos.Line, pos.Col
			f.Key, f.Message = f.Key+": "+m[1]+m[2], m[3]
			break
		}
	}
	return f
}
