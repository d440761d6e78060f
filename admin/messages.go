package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"leasehold/channel"
	"leasehold/delivery"
	"leasehold/delivery/outbound"
	"leasehold/engine"
	"leasehold/internal/eventid"
	"leasehold/internal/fault"
	"leasehold/internal/loop"
)

const (
	// mostWait bounds a request that waits for its message: proxies end silent ones
	// after a minute.
	mostWait = time.Minute
	// maxKey bounds an idempotency key in bytes: it stands in an index.
	maxKey = 200
)

// Post is what somebody asks to be sent.
type Post struct {
	Op             string           `json:"op,omitempty"` // send, when left out
	Conversation   string           `json:"conversation"`
	Thread         string           `json:"thread,omitempty"`
	MessageID      string           `json:"message_id,omitempty"` // the platform's, or ours of a message that we sent: what is edited, deleted or reacted to
	Text           string           `json:"text,omitempty"`       // of react: the emoji
	Format         string           `json:"format,omitempty"`     // plain, when left out, or markdown
	Native         json.RawMessage  `json:"native,omitempty"`     // merged into the platform's call
	IdempotencyKey string           `json:"idempotency_key,omitempty"`
	ExpiresIn      channel.Duration `json:"expires_in,omitzero"` // 15 min, when left out; of typing 10 s
}

// MessageView is a message as an answer shows it.
type MessageView struct {
	Message
	WaitsFor string `json:"waits_for,omitempty"` // what a queued one waits for, as far as it can be told
}

// postMessage stores a message to be sent and, with wait, looks what becomes of it.
// What its installation's type cannot do is refused here: nobody should wait for it
// to expire.
func (a *API) postMessage(w http.ResponseWriter, r *http.Request) error {
	wait, err := waitOf(r)
	if err != nil {
		return err
	}
	var in struct {
		Post
		ExpiresIn *channel.Duration `json:"expires_in"` // nil: left out, which nothing of it is not
	}
	if err := read(w, r, &in); err != nil {
		return err
	}
	p := in.Post
	p.ExpiresIn = channel.Duration(outbound.ExpiryOf(p.Op))
	if in.ExpiresIn != nil {
		p.ExpiresIn = *in.ExpiresIn
	}
	row, err := a.speaker(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	m, err := a.letter(r.Context(), row, p)
	if err != nil {
		return err
	}
	return a.post(w, r, m, wait)
}

// waitOf is how long a request waits for what becomes of its message.
func waitOf(r *http.Request) (time.Duration, error) {
	q := queryOf(r, "wait")
	wait := q.span("wait", mostWait)
	return wait, q.err()
}

// post stores m, and answers with what became of it by the end of wait.
func (a *API) post(w http.ResponseWriter, r *http.Request, m outbound.Message, wait time.Duration) error {
	posted, err := a.o.Store.PutMessage(r.Context(), m)
	if err != nil {
		return err //nolint:wrapcheck // it begins with what was done
	}
	if !repeats(m, posted) {
		return fault.Errorf(fault.Conflict, "message %s was posted before under this key, with other content; nothing new was sent: take another key for it", posted.ID)
	}
	if a.o.Process != nil && !ended(posted) {
		a.o.Process.WakeMessages(posted.Lease)
		if posted, err = a.outcome(r.Context(), posted, wait); err != nil {
			return err
		}
	}
	status := http.StatusAccepted
	if ended(posted) {
		status = http.StatusOK
	}
	return a.answer(w, status, a.messageView(posted))
}

// repeats reports whether m is what was posted under its key.
func repeats(m outbound.Message, posted Message) bool {
	return posted.ID == m.ID || posted.Op == m.Op && posted.Conversation == m.Conversation && posted.Thread == m.Thread &&
		posted.MessageID == m.MessageID && posted.Text == m.Text && posted.Format == cmp.Or(m.Format, channel.Plain) && bytes.Equal(posted.Native, m.Native)
}

// speaker is the installation that is to send.
func (a *API) speaker(ctx context.Context, id string) (Installation, error) {
	row, err := a.o.Store.Installation(ctx, id)
	where := a.o.Declared(id)
	if fault.Is(err, fault.NotFound) && where != "" {
		return row, fault.Errorf(fault.NotFound, "installation %s is set in %s, which was not applied yet; start leasehold run, or run leasehold reload", id, where)
	}
	if err != nil {
		return row, fmt.Errorf("post a message: %w", err)
	}
	return row, nil
}

func ended(m Message) bool { return !m.EndedAt.IsZero() }

// outcome looks what becomes of a message for as long as wait; as it then is, it is
// returned.
func (a *API) outcome(ctx context.Context, m Message, wait time.Duration) (Message, error) {
	const first, most = 5 * time.Millisecond, 250 * time.Millisecond
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for pause := first; !ended(m) && loop.Sleep(limited, pause) == nil; pause = min(most, pause*2) {
		now, err := a.o.Store.Message(ctx, m.ID)
		if err != nil {
			return m, fmt.Errorf("look what became of the message: %w", err)
		}
		m = now
	}
	return m, nil
}

// letter checks p against what the installation's type can do.
func (a *API) letter(ctx context.Context, row Installation, p Post) (outbound.Message, error) {
	if p.Op == "" {
		p.Op = "send"
	}
	if string(p.Native) == "null" {
		p.Native = nil
	}
	if err := a.refer(ctx, row, &p); err != nil {
		return outbound.Message{}, err
	}
	m := channel.Message{
		ID: eventid.NewMessage(time.Now()), Installation: row.ID, Op: p.Op, Conversation: p.Conversation, Thread: p.Thread,
		MessageID: p.MessageID, Text: p.Text, Format: p.Format, Native: p.Native,
	}
	if err := a.able(row, m); err != nil {
		return outbound.Message{}, err
	}
	if faults := append(m.Faults(), p.faults()...); len(faults) > 0 {
		return outbound.Message{}, fault.Errorf(fault.Invalid, "%s", strings.Join(faults, "; "))
	}
	return outbound.Message{Message: m, IdempotencyKey: p.IdempotencyKey, ExpiresIn: p.ExpiresIn.Std()}, nil
}

// refer checks what p is about where it names a message of ours, whose conversation it
// takes. What that has no id for yet is looked up when p is sent.
func (a *API) refer(ctx context.Context, row Installation, p *Post) error {
	if !eventid.IsMessage(p.MessageID) {
		return nil
	}
	of, err := a.o.Store.Message(ctx, p.MessageID)
	if fault.Is(err, fault.NotFound) || err == nil && of.Installation != row.ID {
		return fault.Errorf(fault.Invalid, "message_id: there is no message %s of installation %s: it may be past its retention; take the platform's id of it", p.MessageID, row.ID)
	}
	if err != nil {
		return fmt.Errorf("look for what the message is about: %w", err)
	}
	p.Conversation = cmp.Or(p.Conversation, of.Conversation)
	if p.Conversation != of.Conversation {
		return fault.Errorf(fault.Invalid, "conversation: message %s is in %s; leave conversation out", of.ID, of.Conversation)
	}
	if of.Op != "send" {
		return fault.Errorf(fault.Invalid, "message_id: %s is no message of its own (it is op %s); name the one that was sent", of.ID, of.Op)
	}
	if !ended(of) {
		return nil
	}
	named := outbound.Named{State: outbound.State(slices.Index(outbound.States, of.State))}
	if of.Receipt != nil {
		if named.Receipt, err = json.Marshal(of.Receipt); err != nil {
			return fmt.Errorf("read a receipt: %w", err)
		}
	}
	if _, why := named.On(of.ID); why != "" {
		return fault.Errorf(fault.Invalid, "message_id: %s", why)
	}
	return nil
}

// able says why the installation cannot do what m asks for.
func (a *API) able(row Installation, m channel.Message) error {
	spec, known := a.o.Types.Lookup(row.Type)
	if !known {
		return fault.Errorf(fault.Invalid, "installation %s is of type %s, which this program does not have; run leasehold types list", row.ID, row.Type)
	}
	if _, isOp := spec.Can.Does(m.Op); !isOp {
		return fault.Errorf(fault.Invalid, "op: must be send, edit, delete, react, unreact or typing (got %q)", m.Op)
	}
	what, cannot := spec.Can.Lacks(m), spec.Able(row.Config).Lacks(m)
	switch {
	case what != "":
		return fault.Errorf(fault.Invalid, "installation %s is of type %s, which %s; leasehold types list shows what each type can", row.ID, row.Type, what)
	case cannot != "":
		return fault.Errorf(fault.Invalid, "the config of installation %s does not say how: it %s; leasehold types show %s lists the keys", row.ID, cannot, row.Type)
	case !row.Enabled:
		return fault.Errorf(fault.Conflict, "installation %s is disabled, so nothing would send it; run leasehold installations enable %s", row.ID, row.ID)
	}
	return nil
}

// faults are what is wrong with how p is to be sent.
func (p Post) faults() (faults []string) {
	if n := len(p.IdempotencyKey); n > maxKey {
		faults = append(faults, fmt.Sprintf("idempotency_key: must be at most %d bytes (got %d)", maxKey, n))
	}
	if d := p.ExpiresIn.Std(); d < delivery.LeastExpiry || d > delivery.MostExpiry {
		faults = append(faults, fmt.Sprintf("expires_in: must be from 1s to 30d (got %s)", d))
	}
	return faults
}

func (a *API) messageView(m Message) MessageView {
	v := MessageView{Message: m}
	if m.State != outbound.Queued.String() {
		return v
	}
	switch {
	case a.o.Mode == Stopped:
		v.WaitsFor = "leasehold run"
	case a.o.Process == nil:
		v.WaitsFor = "the process that holds the store"
	case m.NextAttempt.After(time.Now()):
		v.WaitsFor = cmp.Or(a.o.Process.Limited(m.Lease, m.Installation, m.Conversation), "the next attempt")
	default:
		link, held := a.o.Process.Links()[m.Lease]
		switch {
		case !held:
			v.WaitsFor = "a node that has its installation"
		case link.State != string(engine.Connected):
			v.WaitsFor = fmt.Sprintf("the connection of %s (%s)", m.Lease, strings.TrimSpace(link.State+" "+link.Reason))
		default:
			v.WaitsFor = a.o.Process.Limited(m.Lease, m.Installation, m.Conversation)
		}
	}
	return v
}

func (a *API) listMessages(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "installation", "event", "state", "before", "limit")
	query := MessageQuery{
		Installation: q.text("installation"), Event: q.text("event"), State: q.oneOf("state", outbound.States...),
		Before: q.number("before", 1, math.MaxInt64), Limit: q.limit(),
	}
	if err := q.err(); err != nil {
		return err
	}
	items, err := a.o.Store.Messages(r.Context(), query)
	if err != nil {
		return fmt.Errorf("list messages: %w", err)
	}
	page := Page[Message]{Items: append([]Message{}, items...)}
	if len(items) == query.Limit {
		page.Next = strconv.FormatInt(items[len(items)-1].Seq, 10)
	}
	return a.answer(w, http.StatusOK, page)
}

func (a *API) showMessage(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	m, err := a.o.Store.Message(r.Context(), r.PathValue("id"))
	if err != nil {
		return fmt.Errorf("show message: %w", err)
	}
	return a.answer(w, http.StatusOK, a.messageView(m))
}
