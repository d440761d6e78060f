package exec

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"leasehold/channel"
)

const (
	// callTimeout bounds a call: whoever makes one waits for it.
	callTimeout = 30 * time.Second
	// opCall is what a program says in its hello that takes calls.
	opCall = "call"
)

// call is one of the platform's API that the program is to make.
type call struct {
	ID     string          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Call has the program make a call.
func (p *program) Call(ctx context.Context, c channel.Call) (json.RawMessage, error) {
	s := p.session.Load()
	if s == nil {
		return nil, channel.NotSent(errors.New("the program does not run"))
	}
	return s.call(ctx, c)
}

func (s *session) call(ctx context.Context, c channel.Call) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if len(c.Params) > 0 && !json.Valid(c.Params) {
		return nil, channel.Refused(errors.New("params is no JSON"))
	}
	id := "call_" + strconv.FormatInt(s.calls.Add(1), 10)
	r, err := s.ask(ctx, id, opCall, "call", line("call", call{id, c.Method, c.Params}))
	if err == nil {
		err = s.refusal(r)
	}
	if err != nil {
		return nil, err
	}
	if len(r.Result) == 0 {
		return json.RawMessage("null"), nil
	}
	return r.Result, nil
}
