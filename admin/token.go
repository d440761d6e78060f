package admin

import (
	"net/http"
	"strconv"
	"time"

	"leasehold/channel"
	"leasehold/internal/apitoken"
	"leasehold/internal/fault"
)

// TokenOrder asks for a token.
type TokenOrder struct {
	Name          string           `json:"name"`
	Scopes        []string         `json:"scopes"`
	Installations []string         `json:"installations,omitempty"` // patterns; none = all
	Expires       channel.Duration `json:"expires,omitzero"`        // from now; 0 = never
}

// NewToken is a token that was made. Its text is in this answer and in no other.
type NewToken struct {
	apitoken.Token
	Text string `json:"token"`
}

// WriteNote is a row of the audit: a request that wrote, or was refused to.
type WriteNote struct {
	Seq    int64     `json:"seq"`
	At     time.Time `json:"at"`
	Caller string    `json:"caller"` // the token's name; local = over the socket, or by a command
	Method string    `json:"method"`
	Path   string    `json:"path"` // of a call, and the method that was called
	Status int       `json:"status"`
}

func (a *API) listTokens(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	all, err := a.o.Store.Tokens(r.Context())
	if err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	return a.answer(w, http.StatusOK, Page[apitoken.Token]{Items: append([]apitoken.Token{}, all...)})
}

func (a *API) createToken(w http.ResponseWriter, r *http.Request) error {
	var in TokenOrder
	if err := read(w, r, &in); err != nil {
		return err
	}
	t := apitoken.Token{Name: in.Name, Scopes: in.Scopes, Installations: in.Installations}
	switch err := t.Check(); {
	case err != nil:
		return fault.Wrap(fault.Invalid, err)
	case !idPattern.MatchString(t.Name):
		return fault.Errorf(fault.Invalid, "%q is no name of a token: letters, digits, \".\", \"_\" and \"-\", beginning with a letter or digit, at most 128", t.Name)
	case in.Expires < 0:
		return fault.Errorf(fault.Invalid, "expires: must be positive")
	case in.Expires > 0:
		t.ExpiresAt = time.Now().Add(in.Expires.Std()).UTC().Truncate(time.Second)
	}
	text := apitoken.New(&t)
	a.o.Redact.Add(text)
	if err := a.o.Store.PutToken(r.Context(), t); err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	stored, err := a.o.Store.Token(r.Context(), t.ID)
	if err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	return a.answerOnce(w, NewToken{stored, text})
}

func (a *API) revokeToken(w http.ResponseWriter, r *http.Request) error {
	if err := a.o.Store.RemoveToken(r.Context(), r.PathValue("id")); err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) listAudit(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "before", "limit")
	before, limit := q.number("before", 1, 1<<62), q.limit()
	if err := q.err(); err != nil {
		return err
	}
	rows, err := a.o.Store.WriteNotes(r.Context(), before, limit)
	if err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	page := Page[WriteNote]{Items: append([]WriteNote{}, rows...)}
	if len(rows) == limit {
		page.Next = strconv.FormatInt(rows[limit-1].Seq, 10)
	}
	return a.answer(w, http.StatusOK, page)
}

// answerOnce answers with something that is shown this once: not through the redactor.
func (a *API) answerOnce(w http.ResponseWriter, v any) error {
	b, err := a.encode(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(b) // a client that went away is not our error
	return nil
}
