//go:build !linux

package doctor

func clockSynchronised() synchrony { return unknownSync }

func openFilesOf(int) int64 { return 0 }
