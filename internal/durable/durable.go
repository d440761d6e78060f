// Package durable makes what was done to a folder outlive a loss of power.
package durable
