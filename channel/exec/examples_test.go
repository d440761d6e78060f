//go:build unix

package exec_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/exec"
	"leasehold/internal/need"
)

// example runs a program of the documents. It must answer pings, and go when it is
// asked to: nobody asks twice.
func (s *stage) example(name string, env map[string]string, config map[string]any) *term {
	s.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "docs", "examples", "exec", name))
	if err != nil {
		s.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{"command": []string{path}, "env": env, "config": config})
	if err != nil {
		s.Fatal(err)
	}
	s.times = exec.Times{Ping: 100 * time.Millisecond, Dead: 10 * time.Second, Leave: time.Minute}
	c, err := s.spec().Decode(raw, nil)
	if err != nil {
		s.Fatal(err)
	}
	ch, err := c.Build(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	t := &term{Bench: channeltest.NewBench(nil, s.memory), s: s, ch: ch}
	t.Answers = func(_ context.Context, e channel.Event) (json.RawMessage, bool) {
		return json.RawMessage(`{"modal":"` + e.ID + `"}`), e.ID != "later"
	}
	t.Start(s.Context(), ch)
	s.Cleanup(func() {
		t.Kill()
		<-t.Done()
	})
	return t
}

// answersPings waits until so many signs of life have come that most are pongs.
func (t *term) answersPings() {
	t.s.Helper()
	before, _ := t.Alives()
	t.s.await("answers to pings", func() bool { n, _ := t.Alives(); return n >= before+5 })
}

func (s *stage) texts() (all []string) {
	for _, e := range s.memory.Events() {
		all = append(all, e.Text)
	}
	return all
}

func TestExamples(t *testing.T) {
	t.Parallel()
	t.Run("load.sh", func(t *testing.T) {
		t.Parallel()
		need.Tool(t, "sh", "dash")
		s := newStage(t)
		r := s.example("load.sh", map[string]string{"EVERY": "1"}, nil).connected()
		r.answersPings()
		s.await("two events", func() bool { return len(s.memory.Events()) >= 2 })
		for _, e := range s.memory.Events() {
			if !strings.HasPrefix(e.Text, "load ") || len(e.Text) < len("load 0.0") || e.Conversation.ID != "load" {
				t.Errorf("got %+v, want the load", e)
			}
		}
		r.stops(channel.ErrDraining)
	})

	t.Run("button.py", func(t *testing.T) {
		t.Parallel()
		need.Tool(t, "python3", "python3")
		s := newStage(t)
		r := s.example("button.py", nil, nil).connected()
		r.answersPings()
		press := func(id string) string {
			q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.Readies()[0].Identity+"/press?id="+id, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(q)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
		if got, want := press("a1"), `{"modal": "a1"}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := press("later"), `{"working": true}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		s.keeps("a1", "later")
		e := s.memory.Events()[0]
		if _, err := r.ch.(channel.Sender).Send(t.Context(), channel.Message{ID: "m", Op: "send", Text: "done", FollowUp: e.FollowUp.Address}); err != nil {
			t.Errorf("send: %v", err)
		}
		s.await("the message", func() bool { return strings.Contains(r.Logged(), "to the follow-up: done") })
		r.stops(channel.ErrDraining)
	})

	t.Run("tail.py", func(t *testing.T) {
		t.Parallel()
		need.Tool(t, "python3", "python3")
		s := newStage(t)
		file := filepath.Join(s.dir, "app.log")
		add := func(text string) {
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = f.WriteString(text)
			}
			if err == nil {
				err = f.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		add("one\ntwo\nhal")
		r := s.example("tail.py", nil, map[string]any{"path": file}).connected()
		s.await("two lines", func() bool { return len(s.texts()) == 2 })
		r.answersPings()
		add("f\n")
		s.await("the third", func() bool { return len(s.texts()) == 3 })
		got, err := r.ch.(channel.Sender).Send(t.Context(), channel.Message{ID: "1", Op: "send", Text: "from us"})
		if err != nil || got.MessageID == "" {
			t.Errorf("got %+v, %v, want it appended", got, err)
		}
		s.await("it as a line", func() bool { return len(s.texts()) == 4 })
		r.stops(channel.ErrReplaced)

		add("while away\n")
		r = s.example("tail.py", nil, map[string]any{"path": file}).connected()
		s.await("what came meanwhile", func() bool { return len(s.texts()) == 5 })
		r.stops(channel.ErrDraining)
		if want := "one|two|half|from us|while away"; strings.Join(s.texts(), "|") != want {
			t.Errorf("got %q, want %s", s.texts(), want)
		}
		if n := s.memory.Duplicates(); n > 0 {
			t.Errorf("got %d lines told twice, want none", n)
		}
		s.example("tail.py", nil, nil).ends(channel.ClassRejected, "config")
	})

	t.Run("chat.mjs", func(t *testing.T) {
		t.Parallel()
		need.Tool(t, "node", "nodejs")
		s := newStage(t)
		r := s.example("chat.mjs", nil, map[string]any{"port": 0}).connected()
		r.answersPings()
		var dialer net.Dialer
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		person, err := dialer.DialContext(ctx, "tcp", r.Readies()[0].Identity)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = person.Close() }()
		_ = person.SetDeadline(time.Now().Add(time.Minute)) // it is a TCP connection
		lines := bufio.NewScanner(person)
		hears := func(want string) {
			t.Helper()
			if !lines.Scan() || lines.Text() != want {
				t.Fatalf("got %q, %v, want %q", lines.Text(), lines.Err(), want)
			}
		}
		if _, err := fmt.Fprint(person, "hello\r\nagain\r\n"); err != nil {
			t.Fatal(err)
		}
		hears("(kept)")
		hears("(kept)")
		if got := strings.Join(s.texts(), " "); got != "hello again" {
			t.Errorf("got %q, want what was typed", got)
		}
		e := s.memory.Events()[0]
		if e.Conversation.ID == "" || e.Sender.ID == "" || !e.Addressed || e.Time.IsZero() {
			t.Errorf("got %+v, want who said it, when and where", e)
		}
		send := r.ch.(channel.Sender).Send
		if got, err := send(t.Context(), channel.Message{ID: "1", Op: "send", Conversation: e.Conversation.ID, Text: "welcome"}); err != nil || got.MessageID == "" {
			t.Errorf("got %+v, %v, want it sent", got, err)
		}
		hears("welcome")
		if _, err := send(t.Context(), channel.Message{ID: "2", Op: "send", Conversation: "nobody", Text: "x"}); channel.Outcome(err) != channel.SendRefused {
			t.Errorf("got %v, want it refused", err)
		}
		r.stops(channel.ErrDraining)
	})

	t.Run("there is a test for each", func(t *testing.T) {
		files, err := filepath.Glob(filepath.Join("..", "..", "docs", "examples", "exec", "*"))
		if err != nil || len(files) != 4 {
			t.Errorf("got %q, %v, want the four above", files, err)
		}
		for _, f := range files {
			if info, err := os.Stat(f); err != nil || info.Mode()&0o111 == 0 {
				t.Errorf("%s: got %v, %v, want a program", f, info.Mode(), err)
			}
			if strings.HasSuffix(f, ".sh") {
				if out, err := osexec.CommandContext(t.Context(), "sh", "-n", f).CombinedOutput(); err != nil {
					t.Errorf("%s: %v: %s", f, err, out)
				}
			}
		}
	})
}
