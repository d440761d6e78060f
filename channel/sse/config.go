package sse

import (
	"time"

	"leasehold/channel"
)

// Config is the type's part of an installation. Its doc tags are its manual.
//
// {{NAME}} stands for a secret and {{cursor}} for the id of the last event stored,
// which is also sent as Last-Event-ID; before there is one it is empty. A pointer
// is a JSON pointer (RFC 6901) into an event's data.
type Config struct {
	URL     string                    `json:"url" channel:"required,connection" doc:"Where the stream is: http:// or https://. May hold {{NAME}} of secrets and {{cursor}}, both escaped."`
	Method  string                    `json:"method" channel:"connection" default:"GET" doc:"The request's method."`
	Headers map[string]channel.Text   `json:"headers" channel:"connection" doc:"Headers of the request, literal or by reference; may hold {{NAME}} of secrets."`
	Body    channel.Text              `json:"body" channel:"connection" doc:"What is sent with the request; may hold {{NAME}} of secrets and {{cursor}}. Its Content-Type is JSON or text unless headers say another."`
	Secrets map[string]channel.Secret `json:"secrets" channel:"connection" doc:"What {{NAME}} stands for in url, headers and body."`
	Account string                    `json:"account" channel:"connection" doc:"Who this is on the platform. Two installations with the same host and account are refused; empty refuses none."`

	Events   []string `json:"events" channel:"connection" doc:"The names of the events to take, as their event lines say; an event without one is called message. Empty takes all."`
	Pointers Pointers `json:"pointers" channel:"connection" doc:"Where the data of an event holds what it is made of."`
	MaxSize  int      `json:"max_size" channel:"connection" default:"1048576" doc:"The largest data of an event in bytes; a larger event is dropped and told. At most 16 MiB."`

	AnswerWithin channel.Duration `json:"answer_within" channel:"connection" default:"30s" doc:"How long the server may take to answer the request. Some send their answer with the first event only."`
	DeadAfter    channel.Duration `json:"dead_after" channel:"connection" default:"90s" doc:"Silence, comments included, after which the connection is taken for dead: longer than the longest pause between two comments of the server."`
}

// Pointers say where an event's data holds what it is made of. None is required.
type Pointers struct {
	ID           string `json:"id" channel:"connection" doc:"The platform's id of the event, by which repeats are recognised. Default: the event's own id line; name another where several events share one. Without any, an event that comes again is a second event."`
	Type         string `json:"type" channel:"connection" doc:"The event's type. Default: the name in its event line; without one message where there is a text, else raw."`
	Time         string `json:"time" channel:"connection" doc:"When it happened: RFC 3339, or seconds, milliseconds, microseconds or nanoseconds since 1970."`
	Conversation string `json:"conversation" channel:"connection" doc:"The conversation's id; events of one conversation stay in order."`
	Thread       string `json:"thread" channel:"connection" doc:"The thread's id."`
	Sender       string `json:"sender" channel:"connection" doc:"The sender's id."`
	Text         string `json:"text" channel:"connection" doc:"The text."`
}

// deadAfter is the default bound on silence. Servers send a comment every 15 s, as
// the standard advises, to every 60 s; 90 s lets one of the rarest come late.
const deadAfter = 90 * time.Second

func defaults() Config {
	return Config{
		Method:       "GET",
		MaxSize:      1 << 20,
		AnswerWithin: channel.Duration(30 * time.Second),
		DeadAfter:    channel.Duration(deadAfter),
	}
}
