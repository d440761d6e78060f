package durable

import (
	"io/fs"
	"os"
)

// keepOwner has nothing to do: a new file has the rights of its folder here.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
