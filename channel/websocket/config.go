package websocket

import (
	"time"

	"leasehold/channel"
	"leasehold/internal/markup"
)

// Config is the type's part of an installation. Its doc tags are its manual.
//
// A frame is a template: {{NAME}} stands for a secret, {{cursor}} for the cursor
// of the last event stored, {{id}} for the id of the event that is acknowledged,
// {{/pointer}} for a value of that event's frame. A frame for which a value is
// not known is not sent. In send, edit, delete, react, unreact and typing {{id}},
// {{conversation}}, {{thread}}, {{message_id}} and {{text}} are the message's. A pointer is a JSON pointer (RFC 6901) into a frame.
type Config struct {
	URL         string                    `json:"url" channel:"required,connection" doc:"Where to connect: ws:// or wss://. May hold {{NAME}} of secrets and {{cursor}}, both escaped."`
	Headers     map[string]channel.Text   `json:"headers" channel:"connection" doc:"Headers of the handshake, literal or by reference; may hold {{NAME}} of secrets."`
	Subprotocol string                    `json:"subprotocol" channel:"connection" doc:"The WebSocket subprotocol to ask for."`
	Secrets     map[string]channel.Secret `json:"secrets" channel:"connection" doc:"What {{NAME}} stands for in url, headers and frames."`
	Account     string                    `json:"account" channel:"connection" doc:"Who this is on the platform. Two installations with the same host and account are refused; empty refuses none."`

	Login         channel.Text `json:"login" channel:"connection" doc:"The frame sent first."`
	SubscribeWhen Match        `json:"subscribe_when" channel:"connection" doc:"The frame to wait for before resume and subscribe are sent. Empty sends them right after login."`
	Resume        string       `json:"resume" channel:"connection" doc:"The frame that asks for what was missed; sent before subscribe once an event has been stored."`
	Subscribe     []string     `json:"subscribe" channel:"connection" doc:"Frames sent to ask for events."`
	Ack           string       `json:"ack" channel:"connection" doc:"The frame that acknowledges an event; sent once the event is stored."`
	ReadyWhen     Match        `json:"ready_when" channel:"connection" doc:"The frame that says that we are connected. Empty takes the first answered ping, or the first frame."`
	AuthErrorWhen []Match      `json:"auth_error_when" channel:"connection" doc:"Frames that say that our credentials are refused."`
	IgnoreWhen    []Match      `json:"ignore_when" channel:"connection" doc:"Frames that are no events, such as the answer to ping. Frames that match the other conditions are none either."`
	AuthCodes     []int        `json:"auth_codes" channel:"connection" default:"[4001,4003,4401,4403]" doc:"Close codes that say that our credentials are refused."`

	Send    string `json:"send" channel:"connection" doc:"The frame that sends a message: {{text}}, {{conversation}}, {{thread}}, {{message_id}} of what it answers, {{id}} of its own, {{follow_up}} of the event that it answers while that is good; what the message does not have is null, or empty in a string. Empty sends nothing."`
	Edit    string `json:"edit" channel:"connection" doc:"The frame that changes the text of the message {{message_id}} to {{text}}; the rest is as in send. Empty edits nothing."`
	Delete  string `json:"delete" channel:"connection" doc:"The frame that takes the message {{message_id}} back. Empty deletes nothing."`
	React   string `json:"react" channel:"connection" doc:"The frame that reacts to the message {{message_id}} with the emoji {{text}}; set unreact with it. Empty reacts to nothing."`
	Unreact string `json:"unreact" channel:"connection" doc:"The frame that takes such a reaction back."`
	Typing  string `json:"typing" channel:"connection" doc:"The frame that shows in a conversation that somebody types. Without {{id}} it counts as sent when a ping that follows it is answered. Empty shows nothing."`
	Answer  Answer `json:"answer" channel:"connection" doc:"The frame that says what became of a message, whatever its op. Without answer.id it counts as sent when a ping that follows it is answered."`

	Markup    string `json:"markup" channel:"connection" default:"plain" doc:"What the service reads in {{text}}: plain, markdown (CommonMark), mrkdwn (Slack's), discord, telegram or matrix (their HTML). Text is escaped for it, and Markdown converted."`
	TextLimit int    `json:"text_limit" channel:"connection" doc:"How long {{text}} may be, at least 100; a longer text is sent as several messages. Default: no limit."`
	TextUnit  string `json:"text_unit" channel:"connection" default:"bytes" doc:"What text_limit counts: bytes of UTF-8, utf16 for units of UTF-16, or characters for code points."`

	Rate     channel.Rate `json:"rate" channel:"connection" doc:"How often messages may be sent, such as 30/s or 20/m burst 5. Default: as often as there are some."`
	ChatRate channel.Rate `json:"chat_rate" channel:"connection" doc:"How often messages may be sent into one conversation. Default: as often as rate lets us."`

	Interaction Interaction `json:"interaction" channel:"connection" doc:"Frames that want an answer within seconds: a pressed button, a form. Default: none does."`

	Pointers Pointers `json:"pointers" channel:"connection" doc:"Where a frame holds what an event is made of."`
	Binary   string   `json:"binary" channel:"connection" default:"accept" doc:"Binary messages: accept makes each an event with a payload, refuse ends the connection and blocks the installation."`
	MaxSize  int      `json:"max_size" channel:"connection" default:"1048576" doc:"The largest event in bytes; a larger one is dropped, told and acknowledged. At most 16 MiB."`

	WSPing    bool             `json:"ws_ping" channel:"connection" default:"true" doc:"Whether WebSocket pings are sent. Some servers drop them; then set ping, or dead_after to the longest silence the server keeps."`
	Ping      string           `json:"ping" channel:"connection" doc:"A frame sent as the platform's own ping, once connected."`
	PingEvery channel.Duration `json:"ping_every" channel:"connection" default:"20s" doc:"How often pings of either kind are sent, give or take a tenth."`
	DeadAfter channel.Duration `json:"dead_after" channel:"connection" default:"50s" doc:"Silence of every kind, pongs included, after which the connection is taken for dead. At least twice ping_every."`
}

// Match is a condition on a frame. It holds when the pointer finds a scalar that
// reads like Equals, or, without Equals, finds anything. The empty pointer is the
// frame as a whole, as text. A Match without both is not set.
type Match struct {
	Pointer string `json:"pointer" channel:"connection" doc:"Where to look; empty is the whole frame as text."`
	Equals  string `json:"equals" channel:"connection" doc:"What must stand there, as text: hello, 1, true. Empty: anything."`
}

// Answer says how the platform answers a message. A frame that holds the id of a
// message on its way is its answer and no event; one that comes after within is
// whatever ignore_when makes of it.
type Answer struct {
	ID          string           `json:"id" channel:"connection" doc:"Pointer to the message's {{id}}, which the frame repeats."`
	RefusedWhen Match            `json:"refused_when" channel:"connection" doc:"The answer that says that the message will never be taken. Any other one says that it was."`
	RetryWhen   Match            `json:"retry_when" channel:"connection" doc:"The answer that says that the message was not taken, but may be later. It comes before refused_when."`
	RetryAfter  string           `json:"retry_after" channel:"connection" doc:"Pointer to how long the conversation is to wait then, in seconds. Default: it is tried again by itself, soon and then later."`
	Error       string           `json:"error" channel:"connection" doc:"Pointer to the reason why it was not taken. Default: the frame is shown."`
	MessageID   string           `json:"message_id" channel:"connection" doc:"Pointer to the platform's id of the message."`
	Dedupes     bool             `json:"dedupes" channel:"connection" doc:"Whether the service drops the second of two messages with one {{id}}. Then a message whose answer was lost is sent again; else nobody knows whether it has arrived."`
	Within      channel.Duration `json:"within" channel:"connection" default:"15s" doc:"How long the answer, or the ping's, may take; then nobody knows whether the message has arrived."`
}

// Interaction says which events want an answer at once, and how it is given. In its
// frames {{id}} and {{/pointer}} are the event's.
type Interaction struct {
	When    Match  `json:"when" channel:"connection" doc:"The frames that want one. Each is an event, too."`
	Answer  string `json:"answer" channel:"connection" doc:"The frame that answers with {{ack}}: what the program answered the event with, with interactions = \"sync\" of the installation."`
	Working string `json:"working" channel:"connection" doc:"The frame that says that it is worked on, when there is no such answer in time, or none is waited for. Empty says nothing."`

	FollowUp        string           `json:"follow_up" channel:"connection" doc:"Pointer to the address or token to which the platform takes the answers to the event for a while: {{follow_up}} in send. It is a secret, which raw does not hold."`
	FollowUpExpires string           `json:"follow_up_expires" channel:"connection" doc:"Pointer to when that is over, written as pointers.time is."`
	FollowUpFor     channel.Duration `json:"follow_up_for" channel:"connection" default:"15m" doc:"How long it is good where follow_up_expires says nothing; a day at most."`
	Hide            []string         `json:"hide" channel:"connection" doc:"Pointers to other secrets that the platform puts into events, which raw does not hold either."`
}

// Pointers say where a frame holds what an event is made of. None is required.
type Pointers struct {
	ID           string `json:"id" channel:"connection" doc:"The platform's id of the event, by which repeats are recognised. Without it an event that comes again is a second event."`
	Cursor       string `json:"cursor" channel:"connection" doc:"The position in the stream, for resume. Default: the id."`
	Type         string `json:"type" channel:"connection" doc:"The event's type. Default: message where there is a text, else raw."`
	Time         string `json:"time" channel:"connection" doc:"When it happened: RFC 3339, or seconds, milliseconds, microseconds or nanoseconds since 1970."`
	Conversation string `json:"conversation" channel:"connection" doc:"The conversation's id; events of one conversation stay in order."`
	Thread       string `json:"thread" channel:"connection" doc:"The thread's id."`
	Sender       string `json:"sender" channel:"connection" doc:"The sender's id."`
	Text         string `json:"text" channel:"connection" doc:"The text."`
}

// deadAfter is the default bound on silence: two pings of 20 s may be lost, which
// a crowded line does, and a half-open connection is found within a minute.
const deadAfter = 50 * time.Second

// answerWithin is how long an answer may take by default: what a slow platform needs
// and its own retries within, and short enough that a conversation does not stand
// still.
const answerWithin = 15 * time.Second

func defaults() Config {
	return Config{
		AuthCodes: []int{4001, 4003, 4401, 4403},
		Markup:    markup.Plain,
		TextUnit:  markup.Bytes,
		Binary:    binaryAccept,
		MaxSize:   1 << 20,
		WSPing:    true,
		PingEvery: channel.Duration(20 * time.Second),
		Answer:    Answer{Within: channel.Duration(answerWithin)},

		Interaction: Interaction{FollowUpFor: channel.Duration(channel.FollowUpDefault)},
	}
}
