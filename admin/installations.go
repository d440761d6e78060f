package admin

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"leasehold/channel"
	"leasehold/internal/fault"
)

// The sources of an installation: who owns its row.
const (
	SourceFile = "file" // the config file; nobody else may change it
	SourceAPI  = "api"
)

// Input is what a PUT says of an installation. What it leaves out is as in a new
// one: enabled, the default targets, no labels.
type Input struct {
	Type    string            `json:"type"`
	Via     string            `json:"via,omitempty"`
	Config  json.RawMessage   `json:"config,omitempty"` // secrets by reference only
	Labels  map[string]string `json:"labels,omitempty"`
	Targets []string          `json:"targets,omitzero"` // empty = nowhere
	Enabled *bool             `json:"enabled,omitempty"`
	// Interactions is Defer, when left out, or Sync.
	Interactions string `json:"interactions,omitempty"`
}

var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// Seal fills in what is computed of an installation: its fingerprint and the
// identity that it has on its platform. The error says why its config cannot be
// used; the row may be stored all the same, since its fingerprint then changes
// with its text, so that a correction is tried at once.
func Seal(types *channel.Types, key []byte, i *Installation) error {
	c, err := types.Decode(i.Type, i.Config)
	if err != nil {
		h := hmac.New(sha256.New, key)
		h.Write(fmt.Appendf(nil, "undecoded\x00%q\x00%q", i.Type, i.Config))
		i.Fingerprint, i.Identity = hex.EncodeToString(h.Sum(nil)[:16]), ""
		return fmt.Errorf("config of installation %s: %w", i.ID, err)
	}
	i.Fingerprint, i.Identity = c.Fingerprint(key), c.Identity()
	return nil
}

func (a *API) views(ctx context.Context) ([]View, error) {
	rows, err := a.o.Store.Installations(ctx)
	if err != nil {
		return nil, fmt.Errorf("list installations: %w", err)
	}
	slices.SortFunc(rows, func(x, y Installation) int { return cmp.Compare(x.ID, y.ID) })
	live := a.live()
	views := make([]View, len(rows))
	for n, row := range rows {
		views[n] = a.view(row, live)
	}
	return views, nil
}

func (a *API) live() map[string]Status {
	if a.o.Process == nil {
		return nil
	}
	return a.o.Process.Links()
}

func (a *API) listInstallations(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "state", "type", "label", "after", "limit")
	state, kind, after, limit := q.text("state"), q.text("type"), q.text("after"), q.limit()
	labels := q.values["label"]
	for _, l := range labels {
		if !strings.Contains(l, "=") {
			q.faults = append(q.faults, "label: must be name=value")
		}
	}
	if err := q.err(); err != nil {
		return err
	}
	all, err := a.views(r.Context())
	if err != nil {
		return err
	}
	page := Page[View]{Items: []View{}}
	for _, v := range all {
		if v.ID <= after || !sees(r, v.ID) || state != "" && v.Status.State != state || kind != "" && v.Type != kind || !labelled(v.Labels, labels) {
			continue
		}
		if len(page.Items) == limit {
			page.Next = page.Items[limit-1].ID
			break
		}
		page.Items = append(page.Items, v)
	}
	return a.answer(w, http.StatusOK, page)
}

func labelled(have map[string]string, want []string) bool {
	for _, l := range want {
		name, value, _ := strings.Cut(l, "=")
		if got, ok := have[name]; !ok || got != value {
			return false
		}
	}
	return true
}

func (a *API) showInstallation(w http.ResponseWriter, r *http.Request) error {
	if err := queryOf(r).err(); err != nil {
		return err
	}
	return a.answerInstallation(w, r, http.StatusOK, "")
}

// answerInstallation answers with the row as it now is; its ETag is what If-Match
// wants when it is replaced.
func (a *API) answerInstallation(w http.ResponseWriter, r *http.Request, status int, warning string) error {
	row, err := a.o.Store.Installation(r.Context(), r.PathValue("id"))
	if err != nil {
		return fmt.Errorf("show installation: %w", err)
	}
	v := a.view(row, a.live())
	v.Warning = warning
	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(row.Revision, 10)))
	return a.answer(w, status, v)
}

// putInstallation creates an installation, or with If-Match replaces the one of
// that revision. A config with unknown keys or a literal secret is refused; one
// whose secret cannot be resolved here is taken with a warning, since the program
// that will run it may see what this one does not.
func (a *API) putInstallation(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if !idPattern.MatchString(id) {
		return fault.Errorf(fault.Invalid, "%q is no id: letters, digits, \".\", \"_\" and \"-\", beginning with a letter or digit, at most 128", id)
	}
	revision, err := ifMatch(r)
	if err != nil {
		return err
	}
	var in Input
	if err := read(w, r, &in); err != nil {
		return err
	}
	i := Installation{
		ID: id, Type: in.Type, Via: in.Via, Config: in.Config, Labels: in.Labels, Targets: in.Targets,
		Enabled: in.Enabled == nil || *in.Enabled, Source: SourceAPI, Interactions: in.Interactions,
	}
	if !slices.Contains([]string{"", Defer, Sync}, in.Interactions) {
		return fault.Errorf(fault.Invalid, "interactions: must be defer or sync (got %q)", in.Interactions)
	}
	if len(i.Config) == 0 {
		i.Config = json.RawMessage("{}")
	}
	_, token := callerOf(r.Context())
	if err := mayRefer(r, token, "installation "+id, &i.Config); err != nil {
		return err
	}
	if err := a.known(r.Context(), i.Targets); err != nil {
		return err
	}
	warning, err := a.check(r.Context(), &i)
	if err != nil {
		return err
	}
	if revision == 0 {
		err = a.absent(r.Context(), id)
	} else {
		err = a.editable(r.Context(), id)
	}
	if err != nil {
		return err
	}
	if _, err := a.o.Store.PutInstallation(r.Context(), i, revision); err != nil {
		return fmt.Errorf("put installation: %w", err)
	}
	a.changed()
	status := http.StatusOK
	if revision == 0 {
		status = http.StatusCreated
	}
	return a.answerInstallation(w, r, status, warning)
}

// known refuses a target that is not there, as the file does: a name that was
// mistyped would keep every event waiting.
func (a *API) known(ctx context.Context, targets []string) error {
	if a.o.TargetNames == nil || len(targets) == 0 {
		return nil
	}
	rows, err := a.o.Store.Targets(ctx)
	if err != nil {
		return fmt.Errorf("look for the targets: %w", err)
	}
	var names []string
	if len(rows) == 0 || !a.o.Shared {
		names = a.o.TargetNames() // what a start would put there
	}
	for _, r := range rows {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, t := range targets {
		switch {
		case slices.Contains(names, t):
		case len(names) == 0:
			return fault.Errorf(fault.Invalid, "target %q is not configured, and none is; make one with leasehold targets add, or write a [[target]] into the config file", t)
		default:
			return fault.Errorf(fault.Invalid, "target %q is not configured; there are %s", t, strings.Join(names, ", "))
		}
	}
	return nil
}

// check seals i, and tells a config that no secret could mend from one that only
// lacks its secrets here.
func (a *API) check(ctx context.Context, i *Installation) (warning string, err error) {
	spec, ok := a.o.Types.Lookup(i.Type)
	if !ok {
		return "", fault.Errorf(fault.Invalid, "channel type %q is not known; run leasehold types list", i.Type)
	}
	if spec.FileOnly {
		return "", fault.Errorf(fault.Denied, "an installation of type %s runs what its config says with the rights of Leasehold; define it in the config file", i.Type)
	}
	if err := literal(spec.Config, i.Config); err != nil {
		return "", a.unfit(*i, err)
	}
	unresolved := Seal(a.o.Types, a.o.FingerprintKey, i)
	resolve := func(string, string) (string, error) { return "placeholder", nil }
	if unresolved == nil {
		c, err := a.o.Types.Decode(i.Type, i.Config)
		if err == nil {
			_, err = c.Build(ctx)
		}
		return "", a.unfit(*i, err)
	}
	if _, err := spec.Decode(i.Config, resolve); err != nil {
		return "", a.unfit(*i, err)
	}
	return unresolved.Error(), nil
}

func (a *API) unfit(i Installation, err error) error {
	if err == nil {
		return nil
	}
	return fault.Errorf(fault.Invalid, "config of installation %s: %w; see leasehold types show %s", i.ID, err, i.Type)
}

// ifMatch reads the revision that a PUT replaces; 0 = it creates.
func ifMatch(r *http.Request) (int64, error) {
	tag := r.Header.Get("If-Match")
	if tag == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(strings.Trim(tag, `"`), 10, 64)
	if err != nil || n < 1 {
		return 0, fault.Errorf(fault.Invalid, "If-Match: must be a revision, such as the ETag of GET")
	}
	return n, nil
}

func (a *API) absent(ctx context.Context, id string) error {
	row, err := a.o.Store.Installation(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return fmt.Errorf("look for installation: %w", err)
	case a.fileOwns(row):
		return a.owned(row)
	default:
		return fault.Errorf(fault.Conflict, "installation %s exists at revision %d; replace it with If-Match: \"%d\" (leasehold installations put --revision %d)", id, row.Revision, row.Revision, row.Revision)
	}
}

// editable refuses what the config file owns: it would be undone at the next start.
func (a *API) editable(ctx context.Context, id string) error {
	row, err := a.o.Store.Installation(ctx, id)
	if err != nil {
		return fmt.Errorf("look for installation: %w", err)
	}
	if a.fileOwns(row) {
		return a.owned(row)
	}
	return nil
}

// fileOwns reports whether a start makes the row what the file says.
func (a *API) fileOwns(row Installation) bool { return row.Source == SourceFile && !a.o.Shared }

func (a *API) owned(row Installation) error {
	where := a.o.Declared(row.ID)
	if where == "" {
		where = "the config file"
	}
	return fault.Errorf(fault.Conflict, "installation %s is set in %s; change it there", row.ID, where)
}

func (a *API) enableInstallation(w http.ResponseWriter, r *http.Request) error {
	return a.setEnabled(w, r, true)
}

func (a *API) disableInstallation(w http.ResponseWriter, r *http.Request) error {
	return a.setEnabled(w, r, false)
}

func (a *API) setEnabled(w http.ResponseWriter, r *http.Request, enabled bool) error {
	id := r.PathValue("id")
	if err := a.editable(r.Context(), id); err != nil {
		return err
	}
	if err := a.o.Store.SetEnabled(r.Context(), id, enabled); err != nil {
		return fmt.Errorf("enable or disable installation: %w", err)
	}
	a.changed()
	return a.answerInstallation(w, r, http.StatusOK, "")
}

func (a *API) removeInstallation(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := a.editable(r.Context(), id); err != nil {
		return err
	}
	if err := a.o.Store.RemoveInstallation(r.Context(), id); err != nil {
		return fmt.Errorf("remove installation: %w", err)
	}
	a.changed()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// changed makes a running engine look now instead of at its next tick.
func (a *API) changed() {
	if a.o.Process != nil {
		a.o.Process.Trigger()
	}
}
