package mqtt_test

import (
	"flag"
	"os"
	"testing"
)

// What runs over TCP waits more than it works, so more of it runs at once than
// there are processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if fuzz := flag.Lookup("test.fuzz"); fuzz != nil && fuzz.Value.String() != "" {
		os.Exit(m.Run())
	}
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
