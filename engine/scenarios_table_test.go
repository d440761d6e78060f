package engine_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of scenarios into docs/evidence.md")

// The document says which scenario is played where; it is written from the list.
func TestScenariosAreDocumented(t *testing.T) {
	const doc, begin, end = "../docs/evidence.md", "<!-- scenarios -->\n", "<!-- end of scenarios -->\n"
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	table, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("got no table between %q and %q in %s, want one", begin, end, doc)
	}
	want := scenarioTable()
	if *update {
		if err := os.WriteFile(doc, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("got another table of scenarios in %s; write it with go test ./engine -run TestScenariosAreDocumented -update", doc)
	}
}

func scenarioTable() string {
	var b strings.Builder
	b.WriteString("| scenario |")
	for _, stand := range stands {
		fmt.Fprintf(&b, " %s |", stand.name)
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", 1+len(stands)) + "\n")
	for _, s := range scenarios {
		fmt.Fprintf(&b, "| %s |", s.name)
		for _, stand := range stands {
			if s.on == stand.not {
				b.WriteString(" – |")
			} else {
				b.WriteString(" yes |")
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
