package doctor

import (
	"cmp"
	"fmt"
)

// checkTargets tells which targets do not work, as the process that runs sees it: it has
// those of the store as well as those of the file.
func checkTargets(x *Patient) (all []Finding) {
	if !x.running || len(x.node.Targets) == 0 {
		return nil
	}
	for _, t := range x.node.Targets {
		if t.State != "ok" {
			next := cmp.Or(t.NextStep, "see leasehold targets show "+t.Name)
			all = append(all, Finding{"targets", Warn, fmt.Sprintf("%s is %s: %s", t.Name, t.State, cmp.Or(t.Reason, "no reason is known")), next})
		}
	}
	if len(all) == 0 {
		all = []Finding{{"targets", OK, fmt.Sprintf("%d, none is down or off", len(x.node.Targets)), ""}}
	}
	return all
}
