package config

import "io/fs"

// ownGroup is not asked on Windows, where files have no group.
func ownGroup(fs.FileInfo, []int) bool { return true }
