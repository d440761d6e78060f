package child

import (
	"slices"
	"testing"
)

func TestBasics(t *testing.T) {
	got := basics([]string{"PATH=/bin", "HOME=/root", "LC_ALL=C", "HTTPS_PROXY=http://u:p@h", "TOKEN=x", "PATHS=y", "=C:=C:"}, false)
	if want := []string{"PATH=/bin", "HOME=/root", "LC_ALL=C"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got = basics([]string{`Path=C:\bin`, "SystemRoot=C:", "TOKEN=x", "=C:=C:"}, true)
	if want := []string{`Path=C:\bin`, "SystemRoot=C:"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
