package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"leasehold/internal/freeport"
)

// TestGuides does what the documents say. Every block of shell in them is run as it
// stands, in order, in one folder for each document; so is a block of TOML that is
// said to be a file. Comments that a reader does not see steer it:
//
//	<!-- run
//	any line of a script, as in TestScripts
//	-->                          done at this place
//	<!-- run: & -->              the next block runs in the background, as &step&
//	<!-- run: code N -->         the next block ends with N
//	<!-- run: file NAME -->      the next block is that file; append NAME adds to it
//	<!-- run: example -->        the next block is none: it shows a form, or what another test runs
//
// Besides TestScripts' words, such a script has
//
//	let TEXT REGEXP              in the blocks that follow, TEXT stands for what REGEXP finds
//	                             in the output of the last command
//	program :PORT                the program that takes webhooks, at the port that the document names
//
// Ports of loopback stand for free ones, so that two documents do not meet. Lines
// that begin with make are left out: what they do is the work of other tests.
func TestGuides(t *testing.T) {
	var guides []string
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/channels/*.md"} {
		found, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		guides = append(guides, found...)
	}
	guides = slices.DeleteFunc(guides, func(path string) bool { return filepath.Base(path) == postgresGuide })
	runGuides(t, params(), guides)
}

// postgresGuide needs a server, whose URL is $STORE.
const postgresGuide = "postgres.md"

func TestPostgresGuide(t *testing.T) {
	runGuides(t, postgresParams(t), []string{filepath.Join("..", "docs", postgresGuide)})
}

func runGuides(t *testing.T, p testscript.Params, guides []string) {
	t.Helper()
	var files []string
	dir := t.TempDir()
	for _, path := range guides {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		script, steps := guideScript(t, path, string(text))
		if steps == 0 {
			continue
		}
		name := strings.NewReplacer("../", "", "/", "-", ".md", "").Replace(filepath.ToSlash(path))
		file := filepath.Join(dir, strings.ToLower(name)+".txtar")
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		t.Fatal("got no document with a block of shell, want some")
	}
	p.Files = files
	testscript.Run(t, p)
}

var (
	block    = regexp.MustCompile("(?ms)^<!-- run(.*?)-->$|^```(sh|toml)\n(.*?)^```$")
	local    = regexp.MustCompile(`(127\.0\.0\.1|localhost|program ):(\d+)`)
	lastLine = regexp.MustCompile(`((?:.*\\\n)*.+)\n$`)
	ofMake   = regexp.MustCompile(`(?m)^make [a-z]+\n`)
)

// guideScript makes a script of a document, and counts its blocks of shell.
func guideScript(t *testing.T, path, text string) (script string, steps int) {
	t.Helper()
	ports := map[string]string{}
	text = local.ReplaceAllStringFunc(text, func(s string) string {
		host, port, _ := strings.Cut(s, ":")
		if ports[port] == "" {
			ports[port] = strconv.Itoa(freeport.Of(t)) // to the end of the script: what listens there comes later, and goes and comes
		}
		return host + ":" + ports[port]
	})
	var lines, archive strings.Builder
	fmt.Fprintf(&lines, "# %s, as typed.\nexec sh -c 'ln -s \"$(command -v leasehold)\" leasehold'\n", filepath.ToSlash(path))
	how := ""
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		switch note, language, body := m[1], m[2], m[3]; {
		case strings.HasPrefix(note, "\n"):
			lines.WriteString(note[1:])
		case language == "":
			how = strings.TrimSpace(strings.TrimPrefix(note, ":"))
			continue
		case how == "example":
		case language == "toml":
			word, name, _ := strings.Cut(how, " ")
			if word != "file" && word != "append" {
				continue // a part of a file, to read
			}
			steps++
			part := fmt.Sprintf("part%d.toml", steps)
			fmt.Fprintf(&archive, "-- %s --\n%s", part, body)
			redirect := map[string]string{"file": ">", "append": ">>"}[word]
			fmt.Fprintf(&lines, "exec sh -c 'cat $WORK/%s %s%s'\n", part, redirect, name)
		default:
			steps++
			step := fmt.Sprintf("step%d.sh", steps)
			body = ofMake.ReplaceAllString(body, "")
			if how == "&" { // a signal shall reach the program, not its shell
				body = lastLine.ReplaceAllString(body, "exec $1\n")
			}
			fmt.Fprintf(&archive, "-- %s --\n%s", step, body)
			switch how {
			case "&":
				fmt.Fprintf(&lines, "exec sh -eu $WORK/%s &step%d&\n", step, steps)
			case "":
				fmt.Fprintf(&lines, "exec sh -eu $WORK/%s\n", step)
			default:
				fmt.Fprintf(&lines, "%s sh -eu $WORK/%s\n", how, step)
			}
		}
		how = ""
	}
	return lines.String() + archive.String(), steps
}

func cmdLet(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: let text regexp")
	}
	want, err := regexp.Compile(args[1])
	ts.Check(err)
	found := want.FindString(ts.ReadFile("stdout"))
	if found == "" {
		ts.Fatalf("the last command did not print %s", args[1])
	}
	steps, err := filepath.Glob(filepath.Join(ts.Getenv("WORK"), "step*.sh"))
	ts.Check(err)
	for _, step := range steps {
		text := strings.ReplaceAll(ts.ReadFile(step), args[0], found)
		ts.Check(os.WriteFile(step, []byte(text), 0o600))
	}
}
