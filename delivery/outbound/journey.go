package outbound

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"leasehold/channel"
	"leasehold/internal/jsonframe"
	"leasehold/internal/loop"
)

// journey is one message on its way, in a goroutine of its own. It alone touches
// the item meanwhile.
type journey struct {
	m      *Mailer
	h      *hold          // of which it takes the term and the throttle
	sender channel.Sender // nil: it is not to be sent
	item   *item
	over   string // why it is not to be sent any more; "" = it is
}

// make brings the message as far as it comes, and notes in its item what that is.
// calls ends when it is to be broken off, writes when nothing may be written.
func (j *journey) make(calls, writes context.Context) {
	select {
	case j.m.slots <- struct{}{}:
		defer func() { <-j.m.slots }()
	case <-calls.Done():
		return
	}
	switch it := j.item; {
	case it.State == Sending && j.m.opts.Idempotent(writes, it.Installation):
		j.end(writes, End{State: Queued, Doubt: true, Error: LostWithHolder})
	case it.State == Sending:
		j.end(writes, End{State: Unknown, Error: LostWithHolder})
	case j.over != "":
		j.end(writes, End{State: Expired, Error: j.over})
	default:
		j.send(calls, writes)
	}
}

// send takes the message up, sends it, and writes what became of it.
func (j *journey) send(calls, writes context.Context) {
	m, err := j.begin(calls)
	switch {
	case errors.Is(err, ErrExpired):
		j.item.done = true
		j.tell(writes, End{State: Expired})
		return
	case errors.Is(err, ErrSettled), errors.Is(err, ErrFenced):
		j.refused(err)
		return
	case err != nil || calls.Err() != nil: // broken off; it may have been taken up
		j.end(writes, End{State: Queued})
		return
	}
	if why := m.resolve(); why != "" {
		j.end(writes, End{State: Refused, Error: why})
		return
	}
	if m.Parts == nil && !j.compose(writes, &m.Letter) {
		return
	}
	m.FollowUp = j.addressed(calls, m)
	limited, cancel := context.WithTimeout(calls, sendTimeout)
	receipt, err := j.sender.Send(limited, m.next())
	cancel()
	j.end(writes, hide(j.outcome(calls, &m.Letter, receipt, err), m.FollowUp))
}

// addressed is the follow-up address of its event, to which a message is sent, if there
// is one.
func (j *journey) addressed(ctx context.Context, m TakenUp) (none channel.Secret) {
	if len(m.Sealed) == 0 || j.m.opts.FollowUp == nil {
		return none
	}
	address, err := j.m.opts.FollowUp(ctx, m.Installation, m.Event, m.Sealed)
	if err != nil {
		j.m.log.LogAttrs(ctx, slog.LevelWarn, "follow-up address not opened", slog.String("message", m.ID), slog.String("installation", m.Installation), slog.Any("error", err))
		return none
	}
	return address
}

// hide takes a follow-up address out of what the platform said of the message.
func hide(e End, followUp channel.Secret) End {
	address := followUp.Reveal()
	if address == "" {
		return e
	}
	e.Error = strings.ReplaceAll(e.Error, address, followUp.String())
	e.Receipt = jsonframe.WithoutText(e.Receipt, address)
	return e
}

// begin takes the message up. As long as the store does not answer it asks again:
// nothing is sent that is not noted.
func (j *journey) begin(ctx context.Context) (m TakenUp, err error) {
	for fails := 0; ; {
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		m, err = j.m.box.BeginSending(limited, j.h.term, j.item.Seq)
		cancel()
		if known(err) || ctx.Err() != nil {
			return m, err
		}
		fails++
		j.sick(ctx, fails, err)
		if loop.Sleep(ctx, storeWait(fails)) != nil {
			return m, err
		}
	}
}

// outcome is what Send's answer says of the message.
func (j *journey) outcome(calls context.Context, l *Letter, r channel.Receipt, err error) End {
	if err == nil {
		return l.sent(r)
	}
	e := End{Count: true, Error: l.part() + words(err)}
	attempts := j.item.Attempts + 1
	switch exit, _ := errors.AsType[*channel.Exit](err); channel.Outcome(err) {
	case channel.SendRefused:
		e.State = Refused
	case channel.SendNot:
		switch {
		case exit != nil && exit.Class == channel.ClassRateLimited:
			e.Count, e.Wait = false, toldWait(exit.After, j.m.opts.Random)
			j.h.throttle.shut(j.item.Installation, j.item.Conversation, exit.All, e.Wait)
		case calls.Err() != nil: // a shutdown is not an attempt
			e.Count = false
		default:
			e.Wait, j.item.retry = retryWait(attempts, j.m.opts.Random), true
		}
	default:
		e.State = Unknown
		if j.m.opts.Idempotent(context.WithoutCancel(calls), j.item.Installation) {
			e.State, e.Doubt, e.Wait, j.item.retry = Queued, true, retryWait(attempts, j.m.opts.Random), true
		}
	}
	return e
}

// words are a platform's, at most maxWords bytes of them.
func words(err error) string {
	s := strings.ToValidUTF8(err.Error(), "?")
	if len(s) > maxWords {
		s = strings.ToValidUTF8(s[:maxWords], "") + "…"
	}
	return s
}

// end writes what became of the message until the store has it, which it reports, or
// nothing may be written any more: then the next holder finds it as it was begun.
func (j *journey) end(ctx context.Context, e End) bool {
	e.Term, e.Seq = j.h.term, j.item.Seq
	for fails := 0; ctx.Err() == nil; {
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		err := j.m.box.EndSending(limited, e)
		cancel()
		if known(err) {
			j.ended(ctx, e, err, fails)
			return err == nil
		}
		fails++
		j.sick(ctx, fails, err)
		if loop.Sleep(ctx, storeWait(fails)) != nil {
			break
		}
	}
	return false
}

// ended takes in that the store has written e, or why it has not.
func (j *journey) ended(ctx context.Context, e End, err error, fails int) {
	if err == nil {
		j.item.State, j.item.done = e.State, e.State.Done()
		j.item.due = wall().Add(e.Wait)
		if e.Count {
			j.item.Attempts++
		}
	} else {
		j.refused(err)
	}
	if err == nil || fails > 0 && errors.Is(err, ErrSettled) { // the answer before was lost
		j.tell(ctx, e)
	}
}

// known reports whether the store has answered.
func known(err error) bool {
	return err == nil || errors.Is(err, ErrSettled) || errors.Is(err, ErrFenced) || errors.Is(err, ErrExpired)
}

// refused acts on a no of the store: the lease is lost, or the message is not as it
// was taken for, and the store is read again.
func (j *journey) refused(err error) {
	j.item.done = true
	j.m.mu.Lock()
	defer j.m.mu.Unlock()
	h := j.m.holds[j.h.term.Installation]
	if h == nil || h.term.Epoch != j.h.term.Epoch {
		return
	}
	if errors.Is(err, ErrFenced) {
		h.leave()
		h.breakOff()
		return
	}
	h.look = lookAll
	poke(h.wake)
}

// sick says once that the store does not take what became of a message.
func (j *journey) sick(ctx context.Context, fails int, err error) {
	if fails == 1 && ctx.Err() == nil {
		j.m.log.WarnContext(ctx, "message not noted", "message", j.item.ID, "installation", j.item.Installation, "error", err)
	}
}

// tell logs what became of a message. One that was merely put back, or goes on with its
// next part, is no news.
func (j *journey) tell(ctx context.Context, e End) {
	if !e.State.Done() && e.Error == "" {
		return
	}
	attrs := []slog.Attr{slog.String("message", j.item.ID), slog.String("installation", j.item.Installation)}
	if e.Error != "" {
		attrs = append(attrs, slog.String("error", e.Error))
	}
	switch log := j.m.log; e.State {
	case Sent:
		log.LogAttrs(ctx, slog.LevelDebug, "message sent", attrs...)
	case Refused:
		log.LogAttrs(ctx, slog.LevelInfo, "message refused", attrs...)
	case Expired:
		log.LogAttrs(ctx, slog.LevelInfo, "message expired", attrs...)
	case Unknown:
		log.LogAttrs(ctx, slog.LevelWarn, "message unknown", attrs...)
	default:
		log.LogAttrs(ctx, slog.LevelInfo, "message not sent", append(attrs, slog.Time("next", j.item.due))...)
	}
}
