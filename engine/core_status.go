package engine

import (
	"errors"

	"leasehold/channel"
	"leasehold/internal/fault"
)

// report emits the state of a unit's link when it is not what was last said.
func (c *Core) report(u *unit) {
	s := c.statusOf(u)
	if s.t == u.shown.t && s.next == u.shown.next && s.status == u.shown.status {
		return
	}
	u.shown = s
	c.emit(s)
}

func (c *Core) statusOf(u *unit) actStatus {
	s := actStatus{status: LinkStatus{Installation: u.id, Reason: u.reason, Detail: u.detail, Attempts: u.fails}}
	if u.held && !u.lost {
		s.t = u.token()
	}
	set := func(state State, reason, detail string) actStatus {
		s.status.State, s.status.Reason, s.status.Detail = state, reason, detail
		return s
	}
	switch t := u.term; {
	case t != nil && u.lost:
		return set(Draining, "lease_lost", u.detail)
	case t != nil && t.phase == connecting:
		s.status.State = Connecting
	case t != nil && t.phase == live:
		s.status.State, s.status.Attempts = Connected, 0
	case t != nil && (errors.Is(t.cause, channel.ErrReplaced) || errors.Is(t.cause, errSlept)):
		return set(Connecting, "replaced", t.cause.Error())
	case t != nil && t.cause != nil && !errors.Is(t.cause, channel.ErrParked):
		return set(Draining, "", t.cause.Error())
	case t != nil && !t.closed && t.phase == killed:
		return set(Wedged, "wedged", "waiting for its sockets to close")
	case u.held && c.sick != nil:
		return set(Backoff, "store_"+fault.Of(c.sick).String(), c.sick.Error())
	case t != nil && u.shown.status.State != "":
		return u.shown // it is ending by itself; what comes next is not decided yet
	case t != nil:
		s.status.State = Connecting
	default:
		return c.restingStatus(u, s)
	}
	return s
}

// restingStatus is the state of a unit without a term.
func (c *Core) restingStatus(u *unit, s actStatus) actStatus {
	switch {
	case !u.row.Enabled || u.row.Removed:
		s.status.State, s.status.Reason, s.status.Detail, s.status.Attempts = Disabled, "", "", 0
		if u.row.Backlog {
			s.status.Reason = "backlog"
		}
	case !c.o.known(u.row.Type):
		s.status.State, s.status.Reason = Blocked, "unknown_type"
		s.status.Detail = "this program has no channel type " + u.row.Type + "; run leasehold types list"
	case !u.held:
		s.status.State, s.status.Attempts = Standby, 0
	case u.giveUp || c.leaving():
		s.status.State = Draining
	case u.blocked:
		s.status.State, s.next = Blocked, u.notBefore
	case u.notBefore > c.now:
		s.status.State, s.next = Backoff, u.notBefore
	default:
		s.status.State = Connecting
	}
	return s
}
