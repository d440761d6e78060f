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
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
