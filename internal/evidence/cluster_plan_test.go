//go:build linux

package evidence_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// The faults of a cluster. Those of a node have its number, those of the database -1.
const (
	faultKill    = "kill"    // SIGKILL, and a restart after it
	faultStop    = "stop"    // SIGSTOP, and SIGCONT after it
	faultTerm    = "term"    // SIGTERM, and a restart when it has ended
	faultHole    = "hole"    // nothing passes to the database, nor back
	faultDeaf    = "deaf"    // what the node asks arrives, the answers do not
	faultMute    = "mute"    // what it asks does not arrive
	faultSlow    = "slow"    // every byte is late
	faultCut     = "cut"     // its connections to the database are reset
	faultCrash   = "crash"   // the server ends without a word, and starts again after it
	faultRestart = "restart" // the server ends in order, and starts again after it
)

const database = -1

// clusterFault is one of a plan.
type clusterFault struct {
	kind      string
	node      int
	at, lasts time.Duration
}

func (f clusterFault) String() string {
	who := "database"
	if f.node != database {
		who = nodeName(f.node)
	}
	return fmt.Sprintf("%8.2fs %-8s %-7s for %.2fs", f.at.Seconds(), who, f.kind, f.lasts.Seconds())
}

// clusterPlan is what happens to a cluster, in the order of time.
type clusterPlan []clusterFault

func (p clusterPlan) String() string {
	var lines strings.Builder
	for _, f := range p {
		fmt.Fprintln(&lines, f)
	}
	return lines.String()
}

// over is when the last fault is.
func (p clusterPlan) over() (at time.Duration) {
	for _, f := range p {
		at = max(at, f.at+f.lasts)
	}
	return at
}

// The length of a round, after which all nodes are restarted in rolling order, and
// the time that one of them has for it.
const (
	roundLasts = 20 * time.Second
	rollEvery  = 3 * time.Second
)

// planCluster makes the plan of a seed, of about the length that is asked for and one
// round at least. Nodes and the database have their faults side by side. The first
// round has what no run may lack, and the end of its pause is beyond a takeover.
func planCluster(seed uint64, nodes int, ttl, length time.Duration) (p clusterPlan) {
	rng := rand.New(rand.NewPCG(seed, 0))
	within := func(least, most time.Duration) time.Duration {
		return least + time.Duration(rng.Int64N(int64(most-least)))
	}
	first := [][]string{{faultStop}, {faultHole, faultDeaf, faultMute}, {faultKill}}
	for start := time.Duration(0); start == 0 || start+roundLasts < length; {
		end := start + roundLasts
		for n := range nodes {
			at := start + within(time.Second, 3*time.Second)
			for k := 0; at < end; k++ {
				kinds := []string{faultKill, faultStop, faultTerm, faultHole, faultDeaf, faultMute, faultSlow, faultCut, faultCut}
				long := rng.IntN(2) == 0
				if start == 0 && k == 0 && n < len(first) {
					kinds, long = first[n], true
				}
				f := clusterFault{kind: kinds[rng.IntN(len(kinds))], node: n, at: at}
				switch f.kind {
				case faultKill, faultTerm:
					f.lasts = within(0, 2*time.Second)
				case faultCut:
				case faultSlow:
					f.lasts = within(time.Second, ttl/2)
				default:
					f.lasts = within(500*time.Millisecond, ttl/2)
					if long { // others take over after the TTL and the next sweep
						f.lasts = ttl + within(4*time.Second, 6*time.Second)
					}
				}
				if at += f.lasts; at < end {
					p = append(p, f)
				}
				at += within(time.Second, 6*time.Second)
			}
		}
		p = append(p, clusterFault{
			kind: []string{faultCrash, faultRestart}[rng.IntN(2)], node: database, at: start + within(roundLasts/2, roundLasts), lasts: within(0, 2*time.Second),
		})
		for n := range nodes { // whatever is left of the round's faults is over then
			p = append(p, clusterFault{kind: faultTerm, node: n, at: end})
			end += rollEvery
		}
		start = end
	}
	slices.SortStableFunc(p, func(a, b clusterFault) int { return int(a.at - b.at) })
	return p
}
