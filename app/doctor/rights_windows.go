package doctor

import "io/fs"

// checkRights has nothing to look at: folders have access lists here.
func checkRights(string, fs.FileInfo) []Finding { return nil }

// openFiles has no limit here.
func openFiles() int64 { return 0 }
