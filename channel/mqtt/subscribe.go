package mqtt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"leasehold/channel"
)

// perRequest is how many topics one SUBSCRIBE names: a large cloud broker takes no
// more than eight.
const perRequest = 8

// request is a SUBSCRIBE or UNSUBSCRIBE that waits for its answer.
type request struct {
	filters []string
	end     bool // UNSUBSCRIBE
}

// refusal is a topic that the broker refused.
type refusal struct {
	filter string
	code   byte
	reason string
}

// ask sends what our subscriptions need: the session may have some of them, and
// some that the config names no more.
func (s *session) ask() error {
	var want []string
	for _, filter := range s.plan.topics {
		if qos, ok := s.pos.Topics[filter]; !ok || qos != s.plan.qos || !s.plan.codec.repeatsRetained() {
			want = append(want, filter)
		}
	}
	var gone []string
	for filter := range s.pos.Topics {
		if !slices.Contains(s.plan.topics, filter) {
			gone = append(gone, filter)
		}
	}
	var packets [][]byte
	for filters := range slices.Chunk(want, perRequest) {
		id := s.expect(request{filters: filters})
		b, err := s.plan.codec.subscribe(id, filters, s.plan.qos)
		if err != nil {
			return err
		}
		packets = append(packets, b)
	}
	for filters := range slices.Chunk(gone, perRequest) {
		id := s.expect(request{filters: filters, end: true})
		b, err := s.plan.codec.unsubscribe(id, filters)
		if err != nil {
			return err
		}
		packets = append(packets, b)
	}
	s.later(packets...)
	return s.settle()
}

// expect gives a request its packet id.
func (s *session) expect(r request) uint16 {
	id := s.out.id()
	s.asked[id] = r
	return id
}

func (s *session) answered(p packet, end bool) (request, error) {
	r, ok := s.asked[p.id]
	if !ok || r.end != end {
		return r, violation("an answer to a subscription that we did not ask for")
	}
	delete(s.asked, p.id)
	return r, nil
}

func (s *session) subscribed(p packet) error {
	r, err := s.answered(p, false)
	if err != nil {
		return err
	}
	if len(p.codes) != len(r.filters) {
		return violation("a SUBACK with %d codes for %d topics", len(p.codes), len(r.filters))
	}
	for i, filter := range r.filters {
		switch code := p.codes[i]; {
		case code >= codeError:
			s.refusals = append(s.refusals, refusal{filter, code, p.reason})
			s.note(filter, nil)
		default:
			if code < s.plan.qos {
				s.link.Notice("qos", fmt.Sprintf("the broker grants QoS %d and not %d for %q", code, s.plan.qos, filter))
			}
			s.note(filter, &s.plan.qos)
		}
	}
	return s.settle()
}

func (s *session) unsubscribed(p packet) error {
	r, err := s.answered(p, true)
	if err != nil {
		return err
	}
	for _, filter := range r.filters {
		s.note(filter, nil)
	}
	return s.settle()
}

// note writes down what the session subscribes to. The map is made anew: the old
// one may be part of a cursor.
func (s *session) note(filter string, qos *byte) {
	topics := maps.Clone(s.pos.Topics)
	if topics == nil {
		topics = map[string]byte{}
	}
	if delete(topics, filter); qos != nil {
		topics[filter] = *qos
	}
	s.pos.Topics = topics
}

// settle is called when something was answered: once every SUBSCRIBE is, we are
// connected.
func (s *session) settle() error {
	for _, r := range s.asked {
		if !r.end {
			return nil
		}
	}
	if s.ready.Load() {
		return s.push(nil, s.pos.encode(), nil)
	}
	if len(s.refusals) > 0 {
		if err := s.refusedTopics(); err != nil {
			s.said = err
			return errEnded
		}
	}
	if err := s.push(nil, s.pos.encode(), nil); err != nil {
		return err
	}
	s.ready.Store(true)
	s.lend(s)
	s.link.Ready(channel.Info{Identity: s.clientID})
	s.wake()
	return nil
}

// refusedTopics decides what follows from topics that were refused: without any
// other one there is nothing to be connected for.
func (s *session) refusedTopics() error {
	var said []string
	forGood := false
	for _, r := range s.refusals {
		said = append(said, fmt.Sprintf("%q: %s", r.filter, s.meaning(packet{code: r.code, reason: r.reason})))
		forGood = forGood || !passing(s.plan.codec.refusal(suback, r.code))
	}
	words := "the broker refuses to let us subscribe to " + s.plan.words.Show(strings.Join(said, "; "))
	switch {
	case len(s.pos.Topics) > 0:
		s.link.Notice("subscription_refused", words+"; check topics, and what the account may read")
		return nil
	case forGood:
		return channel.Rejected("subscription", fmt.Errorf("%s; check topics, and what the account may read", words))
	default:
		return channel.Failed("subscription", fmt.Errorf("%s", words))
	}
}
