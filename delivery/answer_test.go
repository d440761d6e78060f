package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"leasehold/channel"
)

func TestReadAnswer(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`{"text":"a"},`, answerMost+1), ",")
	large := `{"text":"` + strings.Repeat("a", answerLimit) + `"}`
	for _, c := range []struct {
		name, contentType, body string
		want                    []string // the texts
		fault                   string   // part of it
	}{
		{"a text", "application/json", `{"text":"done"}`, []string{"done"}, ""},
		{"without a content type", "", ` {"text":"done"} ` + "\n", []string{"done"}, ""},
		{"JSON with parameters", "application/json; charset=utf-8", `{"text":"done"}`, []string{"done"}, ""},
		{"a kind of JSON", "application/problem+json", `{"text":"done"}`, []string{"done"}, ""},
		{"several", "", `{"messages":[{"text":"a"},{"op":"react","text":"b"}]}`, []string{"a", "b"}, ""},
		{"a text with more about it", "", `{"text":"a","thread":"T","expires_in":"1m"}`, []string{"a"}, ""},
		{"a text in Markdown", "", `{"text":"*a*","format":"markdown"}`, []string{"*a*"}, ""},
		{"a native call alone", "", `{"native":{"blocks":[]},"text":""}`, []string{""}, ""},

		{"nothing", "application/json", "", nil, ""},
		{"white space", "", " \n", nil, ""},
		{"another object", "application/json", `{"ok":true}`, nil, ""},
		{"an object that is broken elsewhere", "application/json", `{"ok":tru`, nil, ""},
		{"a list", "application/json", `[{"text":"a"}]`, nil, ""},
		{"a string", "application/json", `"text"`, nil, ""},
		{"words", "", "done", nil, ""},
		{"another type of content", "text/plain", `{"text":"done"}`, nil, ""},
		{"a type of content that is none", "///", `{"text":"done"}`, nil, ""},
		{"an empty text", "", `{"text":""}`, nil, ""},
		{"no text", "", `{"text":null}`, nil, ""},
		{"no messages", "", `{"messages":[]}`, nil, ""},
		{"a text further in", "", `{"data":{"text":"a"}}`, nil, ""},

		{"broken JSON", "application/json", `{"text":"done"`, nil, "no JSON"},
		{"more behind it", "", `{"text":"a"}{"text":"b"}`, nil, "something follows it"},
		{"a number", "", `{"text":5}`, nil, "cannot unmarshal number"},
		{"a key that there is not", "", `{"text":"a","conversaton":"C"}`, nil, `unknown field "conversaton"`},
		{"a key of a message that there is not", "", `{"messages":[{"text":"a","to":"C"}]}`, nil, `unknown field "to"`},
		{"a text beside messages", "", `{"text":"a","messages":[{"text":"b"}]}`, nil, `"text" does not go with messages`},
		{"too many", "", `{"messages":[` + many + `]}`, nil, "21 messages of at most 20"},
		{"too much", "", large, nil, "more than the 64 KiB"},
		{"an op that there is not", "", `{"messages":[{"text":"a"},{"op":"shout","text":"a"}]}`, nil, `message 2: op: must be send`},
		{"a format that there is not", "", `{"text":"a","format":"html"}`, nil, `message 1: format: must be plain or markdown (got "html")`},
		{"a time that is too short", "", `{"text":"a","expires_in":"1ms"}`, nil, "expires_in: must be from 1s to 30d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := ReadAnswer(c.contentType, []byte(c.body))
			if a == nil {
				a = &Answer{}
			}
			var texts []string
			for _, m := range a.Messages {
				texts = append(texts, m.Text)
			}
			sameList(t, "texts", texts, c.want)
			if c.fault == "" && a.Fault != "" || !strings.Contains(a.Fault, c.fault) {
				t.Errorf("fault: got %q, want %q", a.Fault, c.fault)
			}
		})
	}

	t.Run("an answer that is cut off within its text was meant as one", func(t *testing.T) {
		a := ReadAnswer("", []byte(large)[:answerLimit+1])
		if a == nil || !strings.Contains(a.Fault, "64 KiB") {
			t.Errorf("got %+v, want it to be too large", a)
		}
	})

	t.Run("the platform's own answer is taken out as it is", func(t *testing.T) {
		a := ReadAnswer("", []byte(`{"ack":{"modal": 1},"text":"a"}`))
		same(t, "ack", string(a.Ack), `{"modal": 1}`)
		same(t, "messages", len(a.Messages), 1)
		same(t, "messages beside none", len(ReadAnswer("", []byte(`{"ack":{}}`)).Messages), 0)
	})
}

func TestSaid(t *testing.T) {
	heard := &channel.Event{MessageID: "M1", Thread: "T1", Conversation: channel.Ref{ID: "C1"}}
	text := func(s string) *string { return &s }
	minute := channel.Duration(time.Minute)
	for _, c := range []struct {
		name string
		said Said
		can  channel.Capabilities
		want string // op, conversation, thread, message
	}{
		{"what is left open is the event's", Said{Text: "a"}, channel.Capabilities{Threads: true}, "send C1 T1 M1"},
		{"a thread is left out where there are none", Said{Text: "a"}, channel.Capabilities{}, "send C1  M1"},
		{"another thread", Said{Text: "a", Thread: text("T2")}, channel.Capabilities{}, "send C1 T2 M1"},
		{"no thread, and no reference", Said{Text: "a", Thread: text(""), MessageID: text("")}, channel.Capabilities{Threads: true}, "send C1  "},
		{"another conversation has nothing of the event's", Said{Text: "a", Conversation: "C2"}, channel.Capabilities{Threads: true}, "send C2  "},
		{"a reaction is to the event", Said{Op: "react", Text: "eyes", ExpiresIn: &minute}, channel.Capabilities{}, "react C1  M1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.said.Format = channel.Markdown
			m := c.said.About(heard, c.can)
			same(t, "format", m.Format, channel.Markdown)
			same(t, "message", fmt.Sprint(m.Op, " ", m.Conversation, " ", m.Thread, " ", m.MessageID), c.want)
			same(t, "check", c.said.Check(), nil)
		})
	}
}

func FuzzReadAnswer(f *testing.F) {
	for _, seed := range []string{`{"text":"done"}`, `{"messages":[{"op":"react","text":"eyes","native":{}}],"ack":{}}`, `{"text":"a"`, `{"ok":1}`, `{`} {
		f.Add("application/json", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		a := ReadAnswer(contentType, body)
		if a == nil {
			return
		}
		if a.Fault != "" && (len(a.Messages) > 0 || a.Ack != nil) {
			t.Errorf("got %+v, want nothing beside a fault", a)
		}
		for _, m := range a.Messages {
			if err := m.Check(); err != nil {
				t.Errorf("got %v of what was taken, want it checked", err)
			}
		}
	})
}
