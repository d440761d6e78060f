package app

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"leasehold/internal/fault"
)

// exitCode is one way in which the program ends, for people who write scripts.
type exitCode struct {
	code int
	when string
}

// exitCodes are those of this version. They are part of the promise: a service
// manager and a script go by them.
func exitCodes() []exitCode {
	return []exitCode{
		{fault.ExitOK, "done; or the program was asked to stop, and stopped in order"},
		{fault.ExitFailed, "failed: there is no such thing, it stands against what is there, something does not answer,\nan answer could not be written; status --check: not all is well"},
		{fault.ExitUsage, "the command line is wrong, or what was asked for cannot be; nothing was done"},
		{fault.ExitNotRunning, "leasehold is not running, and only the running program could tell or do it; status says it\nalways, with what the store holds"},
		{fault.ExitTemporary, "not now, and perhaps later: the store is held by another process, or its disk is full"},
		{fault.ExitDenied, "the caller may not do this"},
		{fault.ExitConfig, "the config is wrong, or the store is of a newer version: a restart mends nothing"},
	}
}

// exitCodesTopic is leasehold help exit-codes.
func exitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("What leasehold ends with says why, so that a script need not read its words:\n\n")
	for _, e := range exitCodes() {
		fmt.Fprintf(&b, "  %2d  %s\n", e.code, strings.ReplaceAll(e.when, "\n", "\n      "))
	}
	b.WriteString("\nErrors go to stderr and end with the next step; with --json, what went to stdout is JSON.")
	return &cobra.Command{Use: "exit-codes", Short: "What leasehold ends with, and when", Long: b.String()}
}
