package exec

import (
	"fmt"

	"leasehold/channel"
)

// The exit statuses that say more than that a program has ended, from sysexits.h.
const (
	exitTryLater = 75 // EX_TEMPFAIL: with a retry_after in its last status, wait that long
	exitAuth     = 77 // EX_NOPERM: the platform refuses our credentials
	exitConfig   = 78 // EX_CONFIG: the config is wrong
)

// exited classifies the end of a program that we did not ask to end. What it said
// last to people is often why; where its exit status has a meaning its status, the
// last message of that kind, explains it.
func (p *plan) exited(end ended, last status, lastWords string) error {
	err := fmt.Errorf("the program ended: %s", end.words)
	switch end.status {
	case exitTryLater, exitAuth, exitConfig:
		if said := p.show(last.Text, maxShown); said != "" {
			lastWords = said
		}
	}
	if lastWords != "" {
		err = fmt.Errorf("%w; its last words: %s", err, lastWords)
	}
	switch {
	case end.left > 0:
		return channel.Failed("left_behind", fmt.Errorf("%w; %d processes of it do not die", err, end.left))
	case end.status == exitTryLater && last.RetryAfter > 0:
		return channel.RateLimited(err, seconds(last.RetryAfter))
	case end.status == exitAuth:
		return channel.Rejected("auth", fmt.Errorf("%w; check env", err))
	case end.status == exitConfig:
		return channel.Rejected("config", fmt.Errorf("%w; check command, env and config", err))
	case end.status < 0:
		return channel.Failed("killed", err)
	default:
		return channel.Failed(fmt.Sprintf("exit_%d", end.status), err)
	}
}
