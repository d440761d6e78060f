package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mutant whose place has moved takes nothing away.
func TestPlaces(t *testing.T) {
	for _, m := range mutants {
		text, err := os.ReadFile(filepath.Join("..", "..", m.file))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if n := strings.Count(string(text), m.old); n != 1 {
			t.Errorf("%s: got its place in %s %d times, want once; change it in list.go", m.name, m.file, n)
		}
	}
}
