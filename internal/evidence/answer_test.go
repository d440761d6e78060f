//go:build unix

package evidence_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"leasehold/channel/websocket/websocketfake"
)

const (
	// answerKillsEnv is how often the process is killed; "make soak" says 500.
	answerKillsEnv = "LEASEHOLD_ANSWER_KILLS"
	// defaultAnswerKills take some seconds; racedAnswerKills, with the race detector in
	// the program, too.
	defaultAnswerKills, racedAnswerKills = 15, 4
	// perAnswerLife is what each bot says in a life.
	perAnswerLife = 4
)

// speaks lets the bots of a world send.
const speaks = `send = '{"type":"send","id":{{id}},"to":{{conversation}},"text":{{text}}}'
answer = { id = "/ref", message_id = "/id", error = "/error", refused_when = { pointer = "/error" }, dedupes = DEDUPES }
`

// dedupes are the bots of which the platform drops the second of two messages with one
// id.
func dedupes(bot string) bool { return bot < "bot02" }

func TestAnswersKilled(t *testing.T) {
	t.Run("what a program answered is said once, whenever the process is killed; it is unknown only where it was on its way to a platform that does not drop repeats", func(t *testing.T) {
		kills := defaultAnswerKills
		if raced {
			kills = racedAnswerKills
		}
		if text := os.Getenv(answerKillsEnv); text != "" {
			n, err := strconv.Atoi(text)
			must(t, err)
			kills = n
		}
		w := makeWorld(t, "", 4, websocketfake.Options{Dedupes: dedupes}, speaks)
		w.program.says = func(event string) string { return `{"text":"re: ` + event + `","expires_in":"1d"}` }
		began := time.Now()
		for range kills {
			w.say(perAnswerLife)
			p := w.start()
			w.until(p, w.answering(), 0)
			pause(t, rand.N(8*time.Millisecond)) // the moment is about then
			p.kill()
		}
		p := w.start()
		w.arrived(time.Minute + time.Duration(kills)*time.Second)
		await(t, 3*time.Minute, func() (string, bool) {
			n := w.messages("state < 2")
			return fmt.Sprintf("got %d messages that wait, want none", len(n)), len(n) == 0
		})
		p.stop()
		w.judge()
		unknown := w.judgeAnswers()
		repeats := 0
		for _, bot := range w.bots {
			repeats += w.platform.Repeats(bot)
		}
		t.Logf("%d events, %d kills in %v: each answered, %d of them unknown, %d said again and dropped by the platform",
			w.pushed, kills, time.Since(began).Round(time.Millisecond), unknown, repeats)
	})
}

// answering is when the next kill comes: between the program's answer and its arrival
// on the platform, mostly.
func (w *world) answering() <-chan struct{} {
	step := []string{stepRequest, stepAnswer, stepAnswer, stepReceived, stepReceived}[rand.N(5)]
	return w.steps.nth(step, 1+rand.N(2*len(w.bots)))
}

// sent is a message as the table has it.
type sent struct{ bot, key, state, text string }

// messages reads the table beside whoever has it open.
func (w *world) messages(where string) (all []sent) {
	w.Helper()
	db, err := sql.Open("sqlite", "file:"+w.database()+"?_query_only=1&_busy_timeout=5000")
	must(w.T, err)
	defer func() { must(w.T, db.Close()) }()
	rows, err := db.QueryContext(w.Context(), `SELECT installation_id, idempotency_key, state, body->>'text' FROM message WHERE `+where+` ORDER BY seq`)
	must(w.T, err)
	defer func() { must(w.T, rows.Close()) }()
	for rows.Next() {
		var m sent
		must(w.T, rows.Scan(&m.bot, &m.key, &m.state, &m.text))
		all = append(all, m)
	}
	must(w.T, rows.Err())
	return all
}

// judgeAnswers holds every answer against what the platform has.
func (w *world) judgeAnswers() (unknown int) {
	w.Helper()
	const stateSent, stateUnknown = "2", "5"
	stored := rows(w.T, w.database())
	all := w.messages("true")
	want(w.T, "answers in the store", len(all), w.pushed)
	keys := map[string]bool{}
	for _, m := range all {
		event := strings.TrimPrefix(m.text, "re: ")
		if keys[m.key] || m.key != stored[event].webhook+"#1" {
			w.Errorf("%s: got the key %s, want its delivery's, once", event, m.key)
		}
		keys[m.key] = true
		n := 0
		for _, said := range w.platform.Received(m.bot) {
			if said.Text == m.text {
				n++
			}
		}
		switch {
		case n > 1, n == 0 && dedupes(m.bot), m.state == stateSent && n != 1:
			w.Errorf("%s: got it said %d times (state %s), want once", event, n, m.state)
		case m.state == stateUnknown && !dedupes(m.bot):
			unknown++
		case m.state != stateSent:
			w.Errorf("%s: got the state %s, want sent", event, m.state)
		}
	}
	ids := []string{}
	for _, bot := range w.bots {
		for _, m := range w.platform.Received(bot) {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	want(w.T, "messages on the platform under one id", len(ids)-len(slices.Compact(ids)), 0)
	return unknown
}
