package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"leasehold/channel"
)

// sendTimeout bounds how long a program may take to send a message: a retry by the
// platform's rules included, and short enough that its lane does not stand still.
const sendTimeout = time.Minute

// send has the program send a message and waits for its answer.
func (s *session) send(ctx context.Context, m channel.Message) (channel.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if len(m.Native) > 0 && !json.Valid(m.Native) {
		return channel.Receipt{}, channel.Refused(errors.New("native is no JSON"))
	}
	r, err := s.ask(ctx, m.ID, m.Op, "message", line("send", send{m.ID, m.Op, m.Conversation, m.Thread, m.MessageID, m.Text, m.Native, m.FollowUp.Reveal()}))
	if err == nil {
		err = s.refusal(r)
	}
	if err != nil {
		return channel.Receipt{}, err
	}
	return channel.Receipt{MessageID: r.MessageID, Raw: r.Raw}, nil
}

// ask says a line that wants a result and waits for it. op is what the program must
// have said that it can.
func (s *session) ask(ctx context.Context, id, op, what string, b []byte) (result, error) {
	answer, err := s.expect(id, op, what)
	if err != nil {
		return result{}, err
	}
	defer s.forget(id)
	begun, err := s.speech.say(ctx, b)
	if err != nil && !begun {
		return result{}, channel.NotSent(fmt.Errorf("tell the program: %w", err))
	}
	if err != nil {
		return result{}, fmt.Errorf("tell the program: %w", err)
	}
	select {
	case r := <-answer:
		return r, nil
	case <-s.gone:
	case <-ctx.Done():
		return result{}, fmt.Errorf("the program did not say what became of the %s: %w", what, ctx.Err())
	}
	select { // what it said last counts
	case r := <-answer:
		return r, nil
	default:
		return result{}, fmt.Errorf("the program ended before it said what became of the %s", what)
	}
}

// expect makes room for a result.
func (s *session) expect(id, op, what string) (<-chan result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.greeted.IsZero():
		return nil, channel.NotSent(errors.New("the program has not said hello yet"))
	case !slices.Contains(s.can, op):
		return nil, channel.Refused(fmt.Errorf("the program does not say in its hello that it can %s", op))
	case s.results[id] != nil:
		return nil, channel.NotSent(fmt.Errorf("the %s is on its way already", what))
	}
	answer := make(chan result, 1)
	s.results[id] = answer
	return answer, nil
}

func (s *session) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.results, id)
}

// answered takes a result to whoever waits for it. One that nobody waits for
// came too late.
func (s *session) answered(r result) {
	s.mu.Lock()
	answer := s.results[r.ID]
	delete(s.results, r.ID)
	s.mu.Unlock()
	if answer != nil {
		answer <- r
	}
}

// refusal is what a result says is wrong; nil: it was done.
func (s *session) refusal(r result) error {
	if r.Error == "" && (r.Outcome == "" || r.Outcome == "sent") && r.RetryAfter <= 0 {
		return nil
	}
	words := s.plan.show(r.Error, maxShown)
	if words == "" {
		words = "the program could not do it"
	}
	err := errors.New(words)
	switch {
	case r.RetryAfter > 0 && r.Scope == scopeAll:
		return channel.RateLimitedAll(err, seconds(r.RetryAfter))
	case r.RetryAfter > 0:
		return channel.RateLimited(err, seconds(r.RetryAfter))
	case r.Outcome == "not_sent":
		return channel.NotSent(err)
	case r.Outcome == "refused":
		return channel.Refused(err)
	case r.Outcome == "sent":
		return nil
	default: // unknown, or a word of a later version
		return err
	}
}

// scopeAll is the scope of a retry_after that is meant for everything.
const scopeAll = "all"

// longest bounds a wait that a program asks for: a day is what platforms count by.
const longest = 24 * time.Hour

// seconds is a wait as programs write it.
func seconds(n float64) time.Duration {
	if n >= longest.Seconds() {
		return longest
	}
	return time.Duration(n * float64(time.Second))
}
