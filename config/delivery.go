package config

// Delivery is the table [delivery].
type Delivery struct {
	// Targets names where events go of an installation that names none itself;
	// [] is nowhere. Default: every [[target]] of the files.
	Targets []string `toml:"targets" reload:"true"`
	// Concurrency is how many deliveries, of all targets, are in flight at once.
	// Default 256.
	Concurrency int `toml:"concurrency" default:"256" min:"1" max:"4096" reload:"true"`
	// DenyCIDRs are ranges of addresses that no http target may have, looked at after
	// DNS, when a connection is made; through a proxy it is the proxy's that is looked
	// at. [] denies none. Default: link-local addresses, and those at which clouds hand
	// out the machine's credentials.
	DenyCIDRs []string `toml:"deny_cidrs" default:"169.254.0.0/16,fe80::/10,fd00:ec2::254/128,100.100.100.200/32,168.63.129.16/32,192.0.0.192/32" reload:"true"`
	// BacklogMax bounds the bodies of the events that wait for delivery, "2GB", over all
	// installations and targets. Default: none; the disk is the bound.
	BacklogMax Size `toml:"backlog_max"`
	// OnFull says what happens at backlog_max: "refuse" acknowledges nothing more to
	// the platforms and closes their connections until a tenth of it is delivered;
	// "drop_oldest" gives up what waits longest. Default refuse.
	OnFull string `toml:"on_full" default:"refuse" oneof:"refuse drop_oldest"`
	// LoopLimit is how many answers a conversation gets to what was heard in it within
	// one minute, and how many messages a minute a target posts that may hear itself.
	// What is more is a loop: its answers are refused until loop_quiet. Default 60.
	LoopLimit int `toml:"loop_limit" default:"60" min:"1" max:"100000"`
	// LoopTurns is how many answers in a row a conversation gets to what bots say in it,
	// as far as the platform tells who is one. More are a loop. Default 10.
	LoopTurns int `toml:"loop_turns" default:"10" min:"1" max:"100000"`
	// LoopQuiet is how long nobody must have tried to answer in such a conversation until
	// it goes on. Default 5 min.
	LoopQuiet Duration `toml:"loop_quiet" default:"5m" positive:"true"`
}

// Target is one [[target]]: where events go.
type Target struct {
	// Name names it, unique in all files: letters, digits, ".", "_", "-".
	Name string `toml:"name" required:"true"`
	// Type is "http", a POST to url; "command", a run of a program; "message", a
	// message in a conversation on a platform; "pull", fetched by a program that
	// cannot listen; or "log", a line in our log.
	Type string `toml:"type" required:"true" oneof:"http command message log pull"`
	// URL is where an http target listens: http://, https://, or a Unix socket as
	// http+unix:///run/app.sock:/events. It holds no
	// user and password; those go into headers, as a reference. Only of http.
	URL string `toml:"url"`
	// Command is the program that a command target runs for each event, and its
	// arguments: an absolute path, or a name in the PATH; without a shell. No secrets
	// here: everybody on the machine can read them. Only of command, and required.
	Command []string `toml:"command"`
	// Env are variables of the program's environment, literals or references; one
	// whose name looks like a secret must be a reference. Beside them it has PATH,
	// HOME, TZ and the like, and what it must know of its event. Default: none. Only
	// of command.
	Env map[string]Value `toml:"env"`
	// Installation is the id of the one that sends, of a type that can. Events of the
	// conversation that it sends to are not sent back. Only of message, and required.
	Installation string `toml:"installation"`
	// Conversation is where it sends to, as the platform calls it. Only of message,
	// and required.
	Conversation string `toml:"conversation"`
	// Thread is the thread of the conversation. Default: none. Only of message.
	Thread string `toml:"thread"`
	// Text is what is sent, with fields of the event in braces: "{sender.name}:
	// {text}". They are those of match, {type}, {timestamp}, {id}, {node.name},
	// {payload} and {system.NAME}; {{ is a brace. Default: "{text}". Only of message.
	Text string `toml:"text"`
	// Events lists the event types to deliver: "message", a family as
	// "message.*", or "*" for all but "system.*". Default "*": a first event that
	// silently goes nowhere is worse than one too many.
	Events []string `toml:"events" default:"*"`
	// Kinds narrows events to kinds of conversation, as their channel type calls
	// them: "direct", "channel", "topic". Default: every kind, and none. System
	// events are not narrowed.
	Kinds []string `toml:"kinds"`
	// Match narrows events to those in which each of these fields of the envelope's
	// data has this value, or one of a list: "conversation.id" = "C02". A * at the
	// end fits what begins like it. Default: none. System events are not narrowed.
	Match Match `toml:"match"`
	// Timeout bounds one attempt; of pull it is how long a program may keep an event
	// before it acknowledges it. Default 30 s.
	Timeout Duration `toml:"timeout" default:"30s" positive:"true"`
	// MaxAge is how old an event may get before it is given up: chat goes stale
	// in a day, telemetry may want "30d". Default 24 h.
	MaxAge Duration `toml:"max_age" default:"24h" positive:"true"`
	// MaxAttempts is how often one event may fail by its own fault before it is
	// given up, an hour old at least; a target that is down costs none. Default
	// 12: their waits pass 24 h, so that max_age comes first unless it is raised.
	MaxAttempts int `toml:"max_attempts" default:"12" min:"1" max:"1000"`
	// Order says what is delivered one at a time: "conversation" (each thread of
	// a conversation by itself), "installation", or "none". Default conversation.
	Order string `toml:"order" default:"conversation" oneof:"conversation installation none"`
	// Concurrency is how many deliveries to this target are in flight at once.
	// Default 32.
	Concurrency int `toml:"concurrency" default:"32" min:"1" max:"4096"`
	// OnFailure says what a conversation does after three quick tries of one
	// event: "skip" goes on with the next, "hold" waits. Default skip.
	OnFailure string `toml:"on_failure" default:"skip" oneof:"skip hold"`
	// Raw is false to leave the platform's own JSON out of the envelope.
	// Default true.
	Raw bool `toml:"raw" default:"true"`
	// Replies is false to send nothing of what it answers: a target that is another's
	// does not speak for the bot. One with batch > 1 has none. Default true. Only http and
	// command targets answer.
	Replies bool `toml:"replies" default:"true"`
	// Batch is how many events one request carries at most: of those that wait, none is
	// waited for. Default 1: each by itself, in the form that is documented. Only of
	// http.
	Batch int `toml:"batch" default:"1" min:"1" max:"1000"`
	// Gzip compresses the body of a request, from 1 KB on. Default false. Only of http.
	Gzip bool `toml:"gzip"`
	// SigningKeys sign each request after Standard Webhooks: [{ file = "PATH" }] or other
	// references, each to a key that leasehold keys new made (whsec_ and 24 to 64 bytes in
	// base64). With several each makes a signature of its own, so that a key can be
	// replaced without a pause. Default: none, which is unsigned. Only of http.
	SigningKeys []Reference `toml:"signing_keys"`
	// Headers are sent with each request, literals or references; one whose name
	// looks like a secret must be a reference. Default: none. Only of http.
	Headers map[string]Value `toml:"headers"`
	// CAFile is a PEM file of certificates to trust beside the system's.
	// Default: none. Only of http.
	CAFile Path `toml:"ca_file"`
	// ClientCert is the PEM file of the certificate that we show, with its chain.
	// Default: none. Only of http, and with client_key.
	ClientCert Path `toml:"client_cert"`
	// ClientKey is the key of client_cert, in PEM: { file = "PATH" } or another
	// reference. Default: none.
	ClientKey Reference `toml:"client_key"`

	// Pos is where the target is defined.
	Pos Pos
	// Off is why nothing is sent to it; "" = it is on. No file says so.
	Off string
}
