package heartbeat_test

import (
	"encoding/json"
	"testing"
	"time"

	"leasehold/channel/channeltest"
	"leasehold/channel/heartbeat"
)

func TestSuite(t *testing.T) {
	channeltest.Run(t, channeltest.Harness{
		Spec:   heartbeat.Spec,
		Every:  time.Hour,
		Config: json.RawMessage(`{"every":"1h"}`),
	})
}
