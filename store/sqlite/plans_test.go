package sqlite

import (
	"database/sql"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"leasehold/admin"
	"leasehold/delivery/outbound"
	"leasehold/store/internal/record"
)

// walk are the lists that walk a whole table, newest first, until a page is full: an
// index for each thing that somebody may look for would be written with every event.
var walk = []string{
	"deliveries:", "deliveries target:",
	"deliveries delivered:", "deliveries delivered target:", "deliveries dropped:", "deliveries dropped target:",
	"messages:", "messages installation:",
	"messages sent:", "messages refused:", "messages expired:", "messages unknown:",
	"messages sent installation:", "messages refused installation:", "messages expired installation:", "messages unknown installation:",
}

var (
	parameter = regexp.MustCompile(`\$(\d+)`)
	// grown finds the tables that grow with the events, and what a statement calls them.
	grown = regexp.MustCompile(`\b(event|delivery|message)\b(?: (?:AS )?([a-z])\b)?`)
)

func TestEveryPlan(t *testing.T) {
	s := openTest(t, Options{})
	must(t, s.c.outside(t.Context(), func(w *writer) error { _, err := w.exec(sqlMarkTable); return err }))
	must(t, s.c.outside(t.Context(), func(w *writer) error { _, err := w.exec(sqlKeyTable); return err }))
	all, built := statements(t)
	slices.Sort(built)
	const whole = "BeginCopy ClearTable CountRows LastRow ReadRows WriteRows" // a copy reads each table once, in the order of its key
	built = slices.DeleteFunc(built, func(f string) bool { return slices.Contains(strings.Fields(whole), f) })
	want(t, "functions that put a statement together", strings.Join(built, " "), "Deliveries Messages")
	maps.Copy(all, deliveryQueries(t))
	maps.Copy(all, messageQueries(t))
	for name, query := range all {
		t.Run("no loop over a table that grows with the events: "+name, func(t *testing.T) {
			plan := planOf(t, s, query)
			got := slices.ContainsFunc(plan, func(s step) bool { return walks(query, plan, s) })
			if may := slices.Contains(walk, name); got != may {
				t.Errorf("got the plan\n%v\nit walks: got %v, want %v", plan, got, may)
			}
		})
	}
	for _, name := range append([]string{"sqlPending", "sqlOldEvents", tablesOf[0]}, walk...) {
		if all[name] == "" {
			t.Errorf("got no statement %q among %d, want it found", name, len(all))
		}
	}
}

// walks reports whether a step of a plan is a loop over all rows of a table that
// grows with the events. The partial indexes hold only what waits or is dead: they may
// be walked, once.
func walks(query string, plan []step, s step) bool {
	if strings.Contains(s.detail, "AUTOMATIC") {
		return true
	}
	rest, scan := strings.CutPrefix(s.detail, "SCAN ")
	if !scan {
		return false
	}
	if strings.Contains(rest, "INDEX delivery_") || strings.Contains(rest, "INDEX message_waiting") {
		return repeated(plan, s)
	}
	name, _, _ := strings.Cut(rest, " ")
	for _, found := range grown.FindAllStringSubmatch(query, -1) {
		if name == found[1] || name == found[2] {
			return true
		}
	}
	return false
}

// repeated reports whether a step is done once for each row of another.
func repeated(plan []step, s step) bool {
	for _, o := range plan {
		if o.id == s.parent && strings.HasPrefix(o.detail, "CORRELATED") {
			return true
		}
		if o.parent == s.parent && o.id < s.id && (strings.HasPrefix(o.detail, "SCAN") || strings.HasPrefix(o.detail, "SEARCH")) {
			return true
		}
	}
	return false
}

// deliveryQueries are those that Dialect.Deliveries makes, by what is asked for.
func deliveryQueries(t *testing.T) map[string]string {
	all := map[string]string{}
	for _, state := range []string{"", " pending", " delivered", " dead", " dropped"} {
		for more, q := range map[string]admin.DeliveryQuery{"": {}, " before": {Before: 1}, " installation": {Installation: "i"}, " target": {Target: "t"}} {
			q.State = strings.TrimSpace(state)
			query, _, err := dialect("").Deliveries(q)
			must(t, err)
			all["deliveries"+state+more+":"] = query
		}
	}
	return all
}

// messageQueries are those that Dialect.Messages makes, by what is asked for.
func messageQueries(t *testing.T) map[string]string {
	all := map[string]string{}
	for _, state := range append([]string{""}, outbound.States...) {
		for more, q := range map[string]admin.MessageQuery{"": {}, " before": {Before: 1}, " installation": {Installation: "i"}} {
			q.State = state
			query, _, err := dialect("").Messages(q)
			must(t, err)
			all[strings.TrimSpace("messages "+state)+more+":"] = query
		}
	}
	return all
}

// step is one line of a plan.
type step struct {
	id, parent int
	detail     string
}

func (s step) String() string { return "\n" + s.detail }

// planOf is how SQLite would answer a query; arguments that are not given are NULL.
func planOf(t *testing.T, s *Store, query string, args ...any) []step {
	t.Helper()
	if len(args) == 0 {
		most := 0
		for _, found := range parameter.FindAllStringSubmatch(query, -1) {
			n, err := strconv.Atoi(found[1])
			must(t, err)
			most = max(most, n)
		}
		args = make([]any, most)
	}
	rows, err := s.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	must(t, err)
	defer func() { must(t, rows.Close()) }()
	var plan []step
	for rows.Next() {
		var unused int
		var s step
		must(t, rows.Scan(&s.id, &s.parent, &unused, &s.detail))
		plan = append(plan, s)
	}
	must(t, rows.Err())
	return plan
}

func TestStatistics(t *testing.T) {
	t.Run("upkeep takes none", func(t *testing.T) {
		s := openTest(t, Options{})
		term := grant(t, s, "i")
		for n := range 300 {
			take(t, s, term, fmt.Sprint(n))
		}
		must(t, s.db.SelectContext(t.Context(), &[]struct {
			ID     string
			Count  int
			Oldest int
		}{}, sqlBacklogs))
		_, err := s.Upkeep(t.Context())
		must(t, err)
		want(t, "tables of statistics", statisticsOf(t, s), 0)
	})

	t.Run("those that somebody took are gone after the next open, for who reads and who writes", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "leasehold.db")
		s, err := Open(t.Context(), path, Options{ReserveBytes: -1})
		must(t, err)
		take(t, s, grant(t, s, "i"), "1")
		must(t, s.c.outside(t.Context(), func(w *writer) error { _, err := w.exec("ANALYZE"); return err }))
		want(t, "tables of statistics before", statisticsOf(t, s) > 0, true)
		must(t, s.Close())
		s = openAt(t, path, Options{})
		want(t, "tables of statistics", statisticsOf(t, s), 0)
		all, _ := statements(t)
		const scan = "SCAN e USING" // how statistics of one event have it find its delivery's
		if plan := fmt.Sprint(planOf(t, s, all["sqlByWebhook"])); strings.Contains(plan, scan) {
			t.Errorf("got the reader's plan %s, want no scan", plan)
		}
		must(t, s.c.outside(t.Context(), func(w *writer) error {
			return w.each("EXPLAIN QUERY PLAN "+all["sqlByWebhook"], []any{1, ""}, func(rows *sql.Rows) error {
				var id, parent, unused int
				var detail string
				err := rows.Scan(&id, &parent, &unused, &detail)
				if strings.Contains(detail, scan) {
					t.Errorf("got the writer's plan %s, want no scan", detail)
				}
				return err
			})
		}))
	})
}

func statisticsOf(t *testing.T, s *Store) (n int) {
	t.Helper()
	must(t, s.db.Get(&n, sqlStatistics))
	return n
}

func TestPlans(t *testing.T) {
	s := openTest(t, Options{})
	all, _ := statements(t)
	for what, c := range map[string]struct {
		query     string
		args      []any
		want, not string
	}{
		"what waits":              {all["sqlPending"], []any{"i", 0, "", 100}, "USING INDEX delivery_pending (lease_id=? AND ", "TEMP B-TREE"},
		"dead ones of one":        {deliveryQueries(t)["deliveries dead installation:"], []any{"i", 50}, "SCAN d USING INDEX delivery_dead", "TEMP B-TREE"},
		"backlogs":                {sqlBacklogs, nil, "SCAN delivery USING COVERING INDEX delivery_pending", "SCAN event"},
		"a backlog":               {all["sqlBacklog"], []any{"i"}, "USING COVERING INDEX delivery_pending (lease_id=?)", "SCAN event"},
		"waiting deliveries":      {sqlCountPending, nil, "USING COVERING INDEX delivery_pending", "TEMP B-TREE"},
		"dead letters":            {sqlCountDead, nil, "USING COVERING INDEX delivery_dead", "TEMP B-TREE"},
		"old events":              {sqlOldEvents, []any{0, 0, 0, 10}, "SEARCH e USING INTEGER PRIMARY KEY (rowid>?)", "TEMP B-TREE"},
		"events after one":        {record.EventColumns + ` FROM event WHERE seq > $1 ORDER BY seq`, []any{1}, "INTEGER PRIMARY KEY (rowid>?)", "TEMP B-TREE"},
		"a delivery by its id":    {all["sqlByWebhook"], []any{1, ""}, "USING PRIMARY KEY (event_seq=?)", "SCAN"},
		"the account's other row": {all["sqlTwin"], []any{"t", "i", "x"}, "USING INDEX installation_identity (type=? AND identity=?)", "SCAN"},
		"whether somebody rides":  {all["sqlCarries"], []any{"i"}, "installation_via (via=?)", "SCAN installation USING INDEX"},
	} {
		t.Run("a question does not read the whole table: "+what, func(t *testing.T) {
			plan := fmt.Sprint(planOf(t, s, c.query, c.args...))
			if !strings.Contains(plan, c.want) || strings.Contains(plan, c.not) {
				t.Errorf("got the plan\n%s\nwant %q and no %q", plan, c.want, c.not)
			}
		})
	}
}
