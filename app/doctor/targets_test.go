package doctor

import (
	"testing"

	"leasehold/admin"
)

func TestCheckTargets(t *testing.T) {
	patient := func(all ...admin.Target) *Patient {
		return &Patient{running: true, node: admin.Overview{Targets: all}}
	}
	t.Run("each that does not work is told with what to do", func(t *testing.T) {
		all := checkTargets(patient(
			admin.Target{Name: "app", State: "ok"},
			admin.Target{Name: "gone", State: "disabled", Reason: "answered 410", NextStep: "enable it"},
			admin.Target{Name: "typo", State: "unknown"},
		))
		if len(all) != 2 {
			t.Fatalf("got %v, want two findings", all)
		}
		found(t, all[0], Warn, "gone is disabled: answered 410", "enable it")
		found(t, all[1], Warn, "typo is unknown", "leasehold targets show typo")
	})
	t.Run("those that work are one finding", func(t *testing.T) {
		found(t, only(t, checkTargets(patient(admin.Target{Name: "app", State: "ok"}))), OK, "1, none")
	})
	t.Run("where nothing runs nobody knows", func(t *testing.T) {
		if all := checkTargets(&Patient{}); len(all) != 0 {
			t.Errorf("got %v, want nothing said", all)
		}
	})
}
