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
	answer, err := s.expect(m)
	if err != nil {
		return channel.Receipt{}, err
	}
	defer s.forget(m.ID)
	begun, err := s.speech.say(ctx, line("send", send{m.ID, m.Op, m.Conversation, m.Thread, m.MessageID, m.Text, m.Native, m.FollowUp.Reveal()}))
	if err != nil && !begun {
		return channel.Receipt{}, channel.NotSent(fmt.Errorf("tell the program: %w", err))
	}
	if err != nil {
		return channel.Receipt{}, fmt.Errorf("tell the program: %w", err)
	}
	select {
	case r := <-answer:
		return s.receipt(r)
	case <-s.gone:
	case <-ctx.Done():
		return channel.Receipt{}, fmt.Errorf("the program did not say what became of the message: %w", ctx.Err())
	}
	select { // what it said last counts
	case r := <-answer:
		return s.receipt(r)
	default:
		return channel.Receipt{}, errors.New("the program ended before it said what became of the message")
	}
}

// expect checks a message and makes room for its answer.
func (s *session) expect(m channel.Message) (<-chan result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.greeted.IsZero():
		return nil, channel.NotSent(errors.New("the program has not said hello yet"))
	case !slices.Contains(s.can, m.Op):
		return nil, channel.Refused(fmt.Errorf("the program does not say in its hello that it can %s", m.Op))
	case len(m.Native) > 0 && !json.Valid(m.Native):
		return nil, channel.Refused(errors.New("native is no JSON"))
	case s.results[m.ID] != nil:
		return nil, channel.NotSent(errors.New("the message is on its way already"))
	}
	answer := make(chan result, 1)
	s.results[m.ID] = answer
	return answer, nil
}

func (s *session) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.results, id)
}

// answered takes a send_result to whoever waits for it. One that nobody waits for
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

// receipt is what a result says of its message.
func (s *session) receipt(r result) (channel.Receipt, error) {
	if r.Error == "" && r.Outcome == "" && r.RetryAfter <= 0 {
		return channel.Receipt{MessageID: r.MessageID, Raw: r.Raw}, nil
	}
	words := s.plan.show(r.Error, maxShown)
	if words == "" {
		words = "the program could not send it"
	}
	err := errors.New(words)
	switch {
	case r.RetryAfter > 0 && r.Scope == scopeAll:
		return channel.Receipt{}, channel.RateLimitedAll(err, seconds(r.RetryAfter))
	case r.RetryAfter > 0:
		return channel.Receipt{}, channel.RateLimited(err, seconds(r.RetryAfter))
	case r.Outcome == "not_sent":
		return channel.Receipt{}, channel.NotSent(err)
	case r.Outcome == "refused":
		return channel.Receipt{}, channel.Refused(err)
	case r.Outcome == "sent":
		return channel.Receipt{MessageID: r.MessageID, Raw: r.Raw}, nil
	default: // unknown, or a word of a later version
		return channel.Receipt{}, err
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
