package clockgate

import (
	"strconv"
	"testing"
	"testing/fstest"
	"time"
)

func TestKept(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }
	const sources = "sys/devices/system/clocksource/clocksource0/available_clocksource"
	clock := func(at time.Time) fstest.MapFS {
		return fstest.MapFS{"sys/class/rtc/rtc0/since_epoch": file(strconv.FormatInt(at.Unix(), 10))}
	}
	for _, c := range []struct {
		name string
		root fstest.MapFS
		want bool
	}{
		{"a board without a clock", fstest.MapFS{sources: file("arch_sys_counter")}, false},
		{"a machine that shows nothing", fstest.MapFS{}, false},
		{"a clock with a battery", clock(today.Add(-time.Second)), true},
		{"one that keeps the local time", clock(today.Add(9 * time.Hour)), true},
		{"one with an empty battery", clock(time.Date(2000, 1, 1, 0, 0, 7, 0, time.UTC)), false},
		{"one that cannot be read", fstest.MapFS{"sys/class/rtc/rtc0/since_epoch": file("")}, false},
		{"a virtual machine", fstest.MapFS{sources: file("tsc kvm-clock ")}, true},
		{"another one", fstest.MapFS{sources: file("hyperv_clocksource_tsc_page acpi_pm")}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := keptBy(c.root, today); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
