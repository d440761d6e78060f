//go:build unix && !race

package evidence_test

// raced: the program is built with the race detector, as the tests are.
const raced = false
