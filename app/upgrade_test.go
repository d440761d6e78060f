package app_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// planted are the migrations of two releases that are still to come, one after the
// other: a program of this one may use the first's schema, and not the second's.
var planted = []struct{ variable, file, sqlite, postgres string }{
	{
		"NEXT", "9998_next.sql",
		"-- +goose Up\nALTER TABLE event ADD COLUMN planted INTEGER NOT NULL DEFAULT 7;\n",
		"-- +goose Up\nALTER TABLE event ADD COLUMN planted bigint NOT NULL DEFAULT 7;\n",
	},
	{
		"LATER", "9999_later.sql",
		"-- +goose Up\nCREATE TABLE planted (a INTEGER) STRICT;\nUPDATE schema_info SET min_reader = 9999;\n",
		"-- +goose Up\nCREATE TABLE planted (a bigint);\nUPDATE schema_info SET min_reader = 9999;\n",
	},
}

// TestUpgrade drives the binary beside two of later releases, $NEXT and $LATER, which
// are this one with migrations planted into it.
func TestUpgrade(t *testing.T) {
	p := postgresParams(t)
	p.Dir = filepath.Join("..", "testdata", "script", "upgrade")
	setup := p.Setup
	binaries := map[string]string{}
	dir, replace := t.TempDir(), map[string]string{}
	for _, m := range planted {
		for database, text := range map[string]string{"sqlite": m.sqlite, "postgres": m.postgres} {
			replace[absolute(t, "..", "store", database, "migrations", m.file)] = write(t, filepath.Join(dir, database+m.file), text)
		}
		overlay, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			t.Fatal(err)
		}
		binaries[m.variable] = filepath.Join(dir, m.variable)
		build := exec.CommandContext(t.Context(), "go", "build", "-overlay", write(t, filepath.Join(dir, m.variable+".json"), string(overlay)), "-o", binaries[m.variable], ".")
		build.Dir, build.Env = absolute(t, ".."), append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build the release with %s: %v\n%s", m.file, err, out)
		}
	}
	p.Setup = func(e *testscript.Env) error {
		for name, path := range binaries {
			e.Setenv(name, path)
		}
		return setup(e)
	}
	testscript.Run(t, p)
}

func absolute(t *testing.T, path ...string) string {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
