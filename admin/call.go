package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"leasehold/channel"
	"leasehold/delivery/outbound"
	"leasehold/internal/fault"
)

const (
	// callWithin bounds a call, the wait for its turn included: longer than platforms
	// take, and shorter than proxies keep silent requests.
	callWithin = 30 * time.Second
	// maxMethod bounds the name of a method in bytes: it stands in the audit.
	maxMethod = 200
	// maxCallAnswer bounds what a platform may answer, in bytes; what a request may have.
	maxCallAnswer = 1 << 20
)

// Call is a call of an installation's platform.
type Call struct {
	Method string          `json:"method"`           // in the platform's words
	Params json.RawMessage `json:"params,omitempty"` // its arguments
}

// CallAnswer is what the platform answered.
type CallAnswer struct {
	Result json.RawMessage `json:"result"`
}

// callInstallation has an installation call its platform's API, once, while the
// request waits. Nothing of it is stored but that it was made.
func (a *API) callInstallation(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	var in Call
	if err := read(w, r, &in); err != nil {
		return err
	}
	if in.Method == "" || len(in.Method) > maxMethod || strings.ContainsFunc(in.Method, func(c rune) bool { return !unicode.IsGraphic(c) || unicode.IsSpace(c) }) {
		return fault.Errorf(fault.Invalid, "method: must be the platform's name of a method, without spaces, at most %d bytes", maxMethod)
	}
	noted(r, in.Method)
	if string(in.Params) == "null" {
		in.Params = nil
	}
	row, err := a.o.Store.Installation(r.Context(), r.PathValue("id"))
	if err != nil {
		return fmt.Errorf("call: %w", err)
	}
	if err := a.callable(row); err != nil {
		return err
	}
	held := row // whose lease it is under
	if row.Via != "" {
		if held, err = a.o.Store.Installation(r.Context(), row.Via); err != nil {
			return fmt.Errorf("call: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), callWithin)
	defer cancel()
	result, err := a.o.Process.Call(ctx, held.ID, channel.Call{Installation: row.ID, Method: in.Method, Params: in.Params})
	if err != nil {
		return a.notCalled(w, row, held, err)
	}
	if len(result) > maxCallAnswer || !json.Valid(result) {
		return &statusError{http.StatusBadGateway, fault.Errorf(fault.Conflict, "the call was made; its answer is no JSON of at most %d bytes (it has %d): ask the platform for less", maxCallAnswer, len(result))}
	}
	return a.answer(w, http.StatusOK, CallAnswer{result})
}

// callable says why calls of an installation cannot be made here.
func (a *API) callable(row Installation) error {
	spec, known := a.o.Types.Lookup(row.Type)
	switch {
	case !known:
		return fault.Errorf(fault.Invalid, "installation %s is of type %s, which this program does not have; run leasehold types list", row.ID, row.Type)
	case !spec.Can.Call:
		return fault.Errorf(fault.Invalid, "installation %s is of type %s, which takes no calls; leasehold types list shows what each type can", row.ID, row.Type)
	case !row.Enabled:
		return fault.Errorf(fault.Conflict, "installation %s is disabled; run leasehold installations enable %s", row.ID, row.ID)
	case a.o.Process == nil:
		return fault.Wrap(fault.Temporary, errNotRunning)
	}
	return nil
}

// notCalled says why there is no answer, and what that means for the call. What may
// have been made is no temporary fault: nobody shall make it again without a look.
func (a *API) notCalled(w http.ResponseWriter, row, held Installation, err error) error {
	var exit *channel.Exit
	outcome := channel.Outcome(err)
	switch {
	case errors.Is(err, outbound.ErrNotHeld) && held.Owner != "" && held.Owner != a.o.Process.Info().Session:
		return fault.Errorf(fault.Conflict, "installation %s is held by node %s; ask there: a call is not passed on", row.ID, cmp.Or(held.Node, "session "+held.Owner))
	case errors.Is(err, outbound.ErrNotHeld):
		return fault.Errorf(fault.Temporary, "no node has installation %s yet; see leasehold status", row.ID)
	case errors.Is(err, outbound.ErrNotConnected):
		link := a.o.Process.Links()[held.ID]
		return fault.Errorf(fault.Temporary, "installation %s is not connected (%s), so nothing was called; see leasehold status", row.ID, strings.TrimSpace(link.State+" "+link.Reason))
	case errors.Is(err, outbound.ErrNoCalls):
		return fault.Errorf(fault.Conflict, "the connection of installation %s takes no calls; see leasehold types show %s", row.ID, row.Type)
	case errors.As(err, &exit) && exit.Class == channel.ClassRateLimited:
		seconds := int((exit.After + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		return &statusError{http.StatusTooManyRequests, fault.Errorf(fault.Temporary, "the call was not made: %w; try again in %d s", err, seconds)}
	case outcome == channel.SendRefused:
		return &statusError{http.StatusUnprocessableEntity, fault.Errorf(fault.Conflict, "the platform refused the call: %w", err)}
	case outcome == channel.SendNot:
		return fault.Errorf(fault.Temporary, "the call was not made: %w; try again", err)
	case errors.Is(err, context.DeadlineExceeded):
		return &statusError{http.StatusGatewayTimeout, fault.Errorf(fault.Conflict, "no answer within %s (%w); the call may have been made: look at the platform before you make it again", callWithin, err)}
	default:
		return &statusError{http.StatusBadGateway, fault.Errorf(fault.Conflict, "no answer (%w); the call may have been made: look at the platform before you make it again", err)}
	}
}

// Call calls the platform's API as an installation. It waits up to half a minute, and
// never calls twice.
func (c *Client) Call(ctx context.Context, installation string, call Call) (CallAnswer, error) {
	if c.within > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeoutCause(ctx, callWithin+c.within, errMute)
		defer done()
	}
	var answer CallAnswer
	return answer, c.exchange(ctx, http.MethodPost, "/v1/installations/"+url.PathEscape(installation)+"/call", call, nil, &answer)
}
