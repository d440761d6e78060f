package storecopy_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leasehold/internal/fault"
	"leasehold/store"
	"leasehold/store/postgres/pgtest"
	"leasehold/store/storecopy"
)

// open opens a store, as copying does, until the test's end.
func open(t testing.TB, url string, o store.Options) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var target = store.Options{Copying: true}

func end(t testing.TB, s store.Store) storecopy.Target {
	t.Helper()
	e, err := s.Copying(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func file(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "leasehold.db") }

func quiet(storecopy.Progress) {}

// carried are the tables that a copy takes along.
func carried(e storecopy.Store) (tables []storecopy.Table) {
	stay := []string{"session", "schema_info", "schema_file", "goose_db_version", "probe", "store_copy"}
	for _, t := range e.Tables() {
		if !slices.Contains(stay, t.Name) {
			tables = append(tables, t)
		}
	}
	return tables
}

// share is how many of n rows a table gets: one is large, as the events are.
func share(table string, n int) int {
	switch table {
	case "event":
		return n
	case "vault":
		return 1 // it has no place for more
	default:
		return min(n, 40)
	}
}

// fill puts up to n rows into every table of an empty store, each text with what a text may
// hold, each number one that both databases have a column for.
func fill(t testing.TB, s store.Store, n int) {
	t.Helper()
	ctx, e, kinds := t.Context(), end(t, s), kindsOf(t)
	if _, err := e.BeginCopy(ctx, "the test", carried(e)); err != nil {
		t.Fatal(err)
	}
	for _, table := range carried(e) {
		var rows []storecopy.Row
		for i := range share(table.Name, n) {
			rows = append(rows, e.Kept(table, filled(kinds, table, i)))
		}
		if err := e.WriteRows(ctx, table, rows); err != nil {
			t.Fatalf("fill %s: %v", table.Name, err)
		}
	}
	if err := e.EndCopy(ctx, map[string]int64{"event": 700_000, "message": 90}); err != nil {
		t.Fatal(err)
	}
}

// large are numbers for which a truth or a small number has no room.
var large = []string{"seq", "epoch", "run", "revision", "event_seq", "version"}

func filled(kinds map[string]string, t storecopy.Table, i int) storecopy.Row {
	r := make(storecopy.Row, len(t.Columns))
	for c, column := range t.Columns {
		key := slices.Contains(t.Key, column)
		switch kinds[t.Name+"."+column] {
		case "INTEGER":
			switch {
			case key || slices.Contains(large, column):
				r[c] = int64(i + 1)
			case isTime(column):
				r[c] = 1_700_000_000_000 + int64(i)
			default:
				r[c] = int64(i % 2)
			}
		case "BLOB":
			r[c] = fmt.Sprintf("%d\x00\xff wörld %s", i, strings.Repeat("x", i%7))
		case "TEXT":
			switch {
			case key || strings.HasSuffix(column, "id"):
				r[c] = fmt.Sprintf("k%06d é", i)
			case slices.Contains([]string{"labels", "targets", "config"}, column): // read as JSON
				r[c] = ""
			default:
				r[c] = fmt.Sprintf("words of %s %d with a NUL \x00 and broken \xff text", column, i)
			}
		}
	}
	return r
}

// kindsOf are the kinds of every column, by TABLE.COLUMN, as a file declares them.
func kindsOf(t testing.TB) map[string]string {
	t.Helper()
	url := file(t)
	open(t, url, target)
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(url, "sqlite:")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // it only read
	rows, err := db.QueryContext(t.Context(), `SELECT m.name || '.' || p.name, p.type FROM sqlite_schema m JOIN pragma_table_info(m.name) p WHERE m.type = 'table'`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	kinds := map[string]string{}
	for rows.Next() {
		var column, kind string
		if err := rows.Scan(&column, &kind); err != nil {
			t.Fatal(err)
		}
		kinds[column] = kind
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return kinds
}

func isTime(column string) bool {
	return strings.HasSuffix(column, "_at") || strings.HasSuffix(column, "since") || slices.Contains([]string{
		"at", "next_attempt", "last_ready", "last_event", "not_before", "window_start", "last_start", "last_success",
	}, column)
}

func TestCopy(t *testing.T) {
	t.Run("what a file holds is alike on a server, and on a file again", func(t *testing.T) {
		for name, o := range map[string]store.Options{"": target, "behind a pooler": {Copying: true, PollOnly: true}} {
			from := open(t, file(t), target)
			fill(t, from, 1100)
			server := open(t, pgtest.Shared(t).Database(t), o)
			there, err := storecopy.Copy(t.Context(), end(t, from), end(t, server), quiet)
			if err != nil {
				t.Fatalf("%s: to the server: %v", name, err)
			}
			for _, table := range there.Tables {
				if want := share(table.Name, 1100); table.Rows != int64(want) {
					t.Errorf("%s: %s: got %d rows, want %d", name, table.Name, table.Rows, want)
				}
			}
			back := open(t, file(t), target)
			again, err := storecopy.Copy(t.Context(), end(t, server), end(t, back), quiet)
			if err != nil {
				t.Fatalf("%s: back: %v", name, err)
			}
			if !slices.Equal(there.Tables, again.Tables) || len(there.Tables) < 8 || len(there.Again)+len(again.Again) > 0 {
				t.Errorf("%s: got\n%v back, want\n%v", name, again, there)
			}
			for _, s := range []store.Store{server, back} {
				if got, err := end(t, s).Counters(t.Context()); err != nil || got["event"] != 700_000 || got["message"] != 90 {
					t.Errorf("%s: got the counters %v, %v, want those of the source", name, got, err)
				}
			}
		}
	})

	t.Run("every lease arrives free, with its epoch, its run and its retry", func(t *testing.T) {
		from, to := open(t, file(t), target), open(t, pgtest.Shared(t).Database(t), target)
		fill(t, from, 3)
		if _, err := storecopy.Copy(t.Context(), end(t, from), end(t, to), quiet); err != nil {
			t.Fatal(err)
		}
		var got []storecopy.Row
		e := end(t, to)
		at := slices.IndexFunc(e.Tables(), func(t storecopy.Table) bool { return t.Name == "lease" })
		err := e.ReadRows(t.Context(), e.Tables()[at], nil, func(r storecopy.Row) error {
			got = append(got, r)
			return nil
		})
		if err != nil || len(got) != 3 {
			t.Fatalf("got %v, %v, want 3 leases", got, err)
		}
		for i, r := range got {
			want := filled(kindsOf(t), e.Tables()[at], i)
			want[slices.Index(e.Tables()[at].Columns, "owner")] = nil
			if fmt.Sprint(r) != fmt.Sprint(want) {
				t.Errorf("got %v, want %v", r, want)
			}
		}
	})

	t.Run("batches are bounded, and each is told", func(t *testing.T) {
		from, to := open(t, file(t), target), open(t, file(t), target)
		fill(t, from, 1100)
		w := &watched{Target: end(t, to)}
		told := 0
		_, err := storecopy.Copy(t.Context(), end(t, from), w, func(p storecopy.Progress) {
			if p.Step == "copying" && p.Table == "event" {
				told++
			}
		})
		if err != nil || w.most != 1000 || told != 2 {
			t.Errorf("got batches of up to %d rows, %d told, %v, want 1000 and 2", w.most, told, err)
		}
	})

	t.Run("a large row is a batch of its own", func(t *testing.T) {
		from, to := open(t, file(t), target), open(t, file(t), target)
		e := end(t, from)
		if _, err := e.BeginCopy(t.Context(), "the test", carried(e)); err != nil {
			t.Fatal(err)
		}
		for _, table := range carried(e) {
			if table.Name != "event" {
				continue
			}
			for i := range 4 {
				r := filled(kindsOf(t), table, i)
				r[slices.Index(table.Columns, "body")] = strings.Repeat("y", 3<<20)
				if err := e.WriteRows(t.Context(), table, []storecopy.Row{r}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := e.EndCopy(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		w := &watched{Target: end(t, to)}
		if _, err := storecopy.Copy(t.Context(), end(t, from), w, quiet); err != nil || w.most != 1 {
			t.Errorf("got batches of up to %d rows, %v, want 1", w.most, err)
		}
	})
}

// watched looks at what is written.
type watched struct {
	storecopy.Target
	most, batches int
	before        func(table string, batch int) error // of each batch; nil = nothing is done
}

func (w *watched) WriteRows(ctx context.Context, t storecopy.Table, rows []storecopy.Row) error {
	w.most = max(w.most, len(rows))
	w.batches++
	if w.before != nil {
		if err := w.before(t.Name, w.batches); err != nil {
			return err
		}
	}
	return w.Target.WriteRows(ctx, t, rows)
}

func TestRefused(t *testing.T) {
	t.Run("a store is not copied onto itself", func(t *testing.T) {
		url := pgtest.Shared(t).Database(t)
		_, err := storecopy.Copy(t.Context(), end(t, open(t, url, target)), end(t, open(t, url, target)), quiet)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "one database") {
			t.Errorf("got %v, want that the two are one", err)
		}
	})

	urls := map[string]func(t *testing.T) string{
		"a file": func(t *testing.T) string { return file(t) }, "a server": func(t *testing.T) string { return pgtest.Shared(t).Database(t) },
	}
	for name, url := range urls {
		t.Run(name+" that holds something stays as it is", func(t *testing.T) {
			from, to := open(t, file(t), target), open(t, url(t), target)
			fill(t, from, 2)
			fill(t, to, 1)
			_, err := storecopy.Copy(t.Context(), end(t, from), end(t, to), quiet)
			if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "is not empty") {
				t.Errorf("got %v, want that it is not empty", err)
			}
			for _, table := range carried(end(t, to)) {
				if n, err := end(t, to).CountRows(t.Context(), table); err != nil || n != 1 {
					t.Errorf("%s: got %d rows, %v, want the one that was there", table.Name, n, err)
				}
			}
		})

		t.Run(name+" with an unfinished copy runs nothing, and takes no other store", func(t *testing.T) {
			from, other, u := open(t, file(t), target), open(t, file(t), target), url(t)
			fill(t, from, 2)
			fill(t, other, 2)
			to, err := store.Open(t.Context(), u, target)
			if err != nil {
				t.Fatal(err)
			}
			first := &watched{Target: end(t, to), before: func(_ string, batch int) error {
				if batch == 3 {
					return fault.Errorf(fault.Temporary, "the network is gone")
				}
				return nil
			}}
			if _, err := storecopy.Copy(t.Context(), end(t, from), first, quiet); !fault.Is(err, fault.Temporary) {
				t.Fatalf("got %v, want the error of the third batch", err)
			}
			if _, err := storecopy.Copy(t.Context(), end(t, other), end(t, to), quiet); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "another store") {
				t.Errorf("another store: got %v, want that it is refused", err)
			}
			if err := to.Close(); err != nil {
				t.Fatal(err)
			}
			for _, o := range []store.Options{{}, {Existing: true}} {
				if s, err := store.Open(t.Context(), u, o); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "run leasehold store copy again") {
					if err == nil {
						_ = s.Close()
					}
					t.Errorf("opened with %+v: got %v, want that the copy is not finished", o, err)
				}
			}
			to = open(t, u, target)
			done, err := storecopy.Copy(t.Context(), end(t, from), end(t, to), quiet)
			if err != nil || !done.Resumed {
				t.Errorf("got resumed %v, %v, want that it goes on", done.Resumed, err)
			}
		})

		t.Run("two copies into "+name+" do not mix", func(t *testing.T) {
			from, to := open(t, file(t), target), open(t, url(t), target)
			fill(t, from, 2)
			first := &watched{Target: end(t, to)}
			first.before = func(_ string, batch int) error {
				if batch > 1 {
					return nil
				}
				_, err := storecopy.Copy(t.Context(), end(t, from), end(t, to), quiet)
				return err
			}
			if _, err := storecopy.Copy(t.Context(), end(t, from), first, quiet); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "another copy") {
				t.Errorf("got %v, want that the second one has taken over", err)
			}
		})
	}
}
