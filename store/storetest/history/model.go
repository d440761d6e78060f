package history

import (
	"fmt"
	"math/bits"

	"github.com/anishathalye/porcupine"
)

// kind is what was asked.
type kind int

const (
	open kind = iota
	renew
	end
	reap
	list
	claim
	begin
	accept
	mark
	release
)

// answer is what came back.
type answer int

const (
	yes     answer = iota // done, granted, freed
	no                    // fenced, gone, not granted, not freed
	unknown               // an error, or nothing in time: it may take effect yet
)

// nobody owns a free lease.
const nobody = -1

// input is a call about one lease, or about a session, which concerns every lease.
type input struct {
	kind    kind
	session int
	old     int // open: the session that it replaces, or nobody
	epoch   int64
	run     int64
	event   int   // accept: its number, which the cursor holds then; from 1
	since   int64 // open, renew: a time of the database's clock before the call, in ms
	until   int64 // reap: it does nothing when the clock is past that
	late    bool  // claim: the session was known to be dead before the call
}

// output is the answer to it.
type output struct {
	answer answer
	epoch  int64
	run    int64
	count  int  // reap: of sessions
	cursor int  // begin
	owner  int  // list
	alive  bool // list
}

// maxSessions is how many sessions a run has at most.
const maxSessions = 64

// state is a lease, and the sessions that there are.
type state struct {
	owner  int
	epoch  int64
	vague  bool // its epoch is one above that, which nobody was told
	run    int64
	cursor int
	alive  uint64
	// ends is the earliest moment at which a live session can have expired.
	ends [maxSessions]int64
}

// model is what a lease may do, call by call.
func (w *world) model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{owner: nobody}} },
		Step: func(s, in, out any) []any {
			var next []any
			for _, n := range s.(state).step(in.(input), out.(output), w.h.Loose) {
				next = append(next, n)
			}
			return next
		},
		Hash:              func(s any) uint64 { return s.(state).hash() },
		DescribeOperation: func(in, out any) string { return describe(in.(input), out.(output)) },
		DescribeState:     func(s any) string { return s.(state).String() },
	}
	return m.ToModel()
}

func (s state) hash() uint64 {
	h := s.alive ^ uint64(s.epoch)<<16 ^ uint64(s.run)<<8 ^ uint64(s.cursor)<<32 ^ uint64(s.owner+1)<<56
	return h * 0x9e3779b97f4a7c15
}

func (s state) lives(session int) bool { return session != nobody && s.alive>>session&1 == 1 }

func (s state) free() bool { return !s.lives(s.owner) }

func (s *state) kill(session int) {
	if session != nobody {
		s.alive &^= 1 << session
		s.ends[session] = 0
	}
}

// step returns what the lease may be after a call with that answer; nothing: it
// cannot have been answered so.
func (s state) step(in input, out output, loose bool) []state {
	switch in.kind {
	case open, renew, end, reap:
		return s.session(in, out)
	case list:
		return s.list(out)
	case claim:
		return s.claim(in, out, loose)
	default:
		return s.fenced(in, out)
	}
}

// maybe is what an effect leaves when it is not known to have happened.
func (s state) maybe(out output, after state) []state {
	if out.answer == unknown {
		return []state{s, after}
	}
	return []state{after}
}

func (s state) session(in input, out output) []state {
	after := s
	switch in.kind {
	case open:
		after.kill(in.old)
		after.alive |= 1 << in.session
		after.ends[in.session] = in.since + ttl.Milliseconds()
		return s.maybe(out, after)
	case renew:
		if s.lives(in.session) != (out.answer == yes) {
			return nil
		}
		if out.answer == yes {
			after.ends[in.session] = in.since + ttl.Milliseconds()
		}
		return []state{after}
	case end:
		after.kill(in.session)
		return s.maybe(out, after)
	default:
		return s.reaped(in, out)
	}
}

// reaped kills as many as were counted of those that may have expired.
func (s state) reaped(in input, out output) (all []state) {
	var expired uint64
	for left := s.alive; left != 0; left &= left - 1 {
		if n := bits.TrailingZeros64(left); s.ends[n] <= in.until {
			expired |= 1 << n
		}
	}
	for dead := expired; ; dead = (dead - 1) & expired { // each subset
		if out.answer == unknown || bits.OnesCount64(dead) == out.count {
			after := s
			for left := dead; left != 0; left &= left - 1 {
				after.kill(bits.TrailingZeros64(left))
			}
			all = append(all, after)
		}
		if dead == 0 {
			return all
		}
	}
}

func (s state) list(out output) []state {
	switch {
	case out.owner != s.owner, out.alive != s.lives(s.owner), out.epoch < s.epoch, s.vague && out.epoch == s.epoch, !s.vague && out.epoch != s.epoch:
		return nil
	}
	s.epoch, s.vague = out.epoch, false
	return []state{s}
}

func (s state) claim(in input, out output, loose bool) []state {
	may := s.free() && (s.lives(in.session) || loose && !in.late)
	after := s
	after.owner = in.session
	switch out.answer {
	case yes:
		if !may || out.epoch <= s.epoch || out.run != s.run {
			return nil
		}
		after.epoch, after.vague = out.epoch, false
		return []state{after}
	case no:
		if !loose && may {
			return nil
		}
		return []state{s}
	default:
		if !may {
			return []state{s}
		}
		after.vague = true
		return []state{s, after}
	}
}

// fenced is a call that takes effect for the lease's owner and epoch only.
func (s state) fenced(in input, out output) (all []state) {
	holds, fails := s.names(in)
	for _, h := range holds {
		after := h
		switch in.kind {
		case begin:
			after.run++
			if out.answer == yes && (out.run != after.run || out.cursor != h.cursor) {
				continue
			}
		case accept:
			after.cursor = in.event
		case release:
			after.owner = nobody
		}
		if out.answer != no {
			all = append(all, after)
		}
	}
	if out.answer != yes {
		all = append(all, fails...)
	}
	return all
}

// names splits the state into those that the call's fence holds in, and those that
// it fails in. A release asks for owner and epoch alone, whoever lives.
func (s state) names(in input) (holds, fails []state) {
	right := in.session == s.owner && (s.lives(s.owner) || in.kind == release) && (in.kind != accept || in.run == s.run)
	switch {
	case !right, !s.vague && in.epoch != s.epoch, s.vague && in.epoch <= s.epoch:
		return nil, []state{s}
	case !s.vague:
		return []state{s}, nil
	}
	told := s
	told.epoch, told.vague = in.epoch, false
	return []state{told}, []state{s}
}

func (s state) String() string {
	epoch := fmt.Sprint(s.epoch)
	if s.vague {
		epoch = ">" + epoch
	}
	owner := "free"
	if s.owner != nobody {
		owner = fmt.Sprintf("s%d", s.owner)
		if s.free() {
			owner += " (dead)"
		}
	}
	return fmt.Sprintf("%s epoch %s run %d cursor %d", owner, epoch, s.run, s.cursor)
}

var kindNames = [...]string{"open", "renew", "end", "reap", "list", "claim", "begin", "accept", "mark", "release"}

func describe(in input, out output) string {
	text := fmt.Sprintf("%s s%d", kindNames[in.kind], in.session)
	switch in.kind {
	case reap:
		text = fmt.Sprintf("reap until %d", in.until)
	case list:
		text = "list"
	case begin, mark, release:
		text += fmt.Sprintf(" epoch %d", in.epoch)
	case accept:
		text += fmt.Sprintf(" epoch %d run %d event %d", in.epoch, in.run, in.event)
	}
	switch {
	case out.answer == unknown:
		return text + " → ?"
	case out.answer == no:
		return text + " → no"
	case in.kind == claim:
		return text + fmt.Sprintf(" → epoch %d run %d", out.epoch, out.run)
	case in.kind == begin:
		return text + fmt.Sprintf(" → run %d cursor %d", out.run, out.cursor)
	case in.kind == reap:
		return text + fmt.Sprintf(" → %d", out.count)
	case in.kind == list && out.owner == nobody:
		return text + fmt.Sprintf(" → free epoch %d", out.epoch)
	case in.kind == list:
		return text + fmt.Sprintf(" → s%d alive %v epoch %d", out.owner, out.alive, out.epoch)
	}
	return text + " → yes"
}
