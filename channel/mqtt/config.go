package mqtt

import (
	"time"

	"leasehold/channel"
)

// Config is the type's part of an installation. Its doc tags are its manual.
type Config struct {
	URL    string   `json:"url" channel:"required,connection" doc:"The broker: mqtt://HOST, mqtts://HOST, ws://HOST/PATH or wss://HOST/PATH. Ports default to 1883, 8883, 80 and 443."`
	Topics []string `json:"topics" channel:"required,connection" doc:"What to subscribe to; + stands for one level, # at the end for the rest. Shared subscriptions are $share/GROUP/TOPIC."`
	QoS    int      `json:"qos" channel:"connection" default:"1" doc:"The QoS to subscribe with: 0, 1 or 2. With 0 what is published while we are away is lost."`

	Version  string         `json:"version" channel:"connection" default:"5" doc:"The protocol: 5 or 3.1.1."`
	ClientID string         `json:"client_id" channel:"connection" doc:"The name of our session at the broker. Default: leasehold-INSTALLATION-XXXXXXXX, the last part random and kept in the store. Never give two clients the same."`
	Username string         `json:"username" channel:"connection" doc:"The account."`
	Password channel.Secret `json:"password" channel:"connection" doc:"Its password."`

	CAFile   string `json:"ca_file" channel:"connection" doc:"A PEM file of certificates to trust beside the system's. An absolute path."`
	CertFile string `json:"cert_file" channel:"connection" doc:"A PEM file with the certificate that we show. An absolute path."`
	KeyFile  string `json:"key_file" channel:"connection" doc:"A PEM file with its key. An absolute path."`

	KeepAlive     channel.Duration `json:"keep_alive" channel:"connection" default:"30s" doc:"The longest silence before we ask for a sign of life. A dead connection is noticed within twice that."`
	SessionExpiry channel.Duration `json:"session_expiry" channel:"connection" default:"1d" doc:"How long the broker keeps messages for us while we are away. 0s: not at all. With version 3.1.1 the broker decides how long, unless it is 0s."`
	Dedupe        string           `json:"dedupe" channel:"connection" doc:"What says that two messages of a topic are one: a JSON pointer into the payload, such as /id, or user-property:NAME. Default: nothing does, but a message that the broker repeats is recognised."`

	Rate     channel.Rate `json:"rate" channel:"connection" doc:"How often we may publish, such as 10/s or 100/m burst 20. Default: as often as there is something."`
	ChatRate channel.Rate `json:"chat_rate" channel:"connection" doc:"How often we may publish to one topic. Default: as often as rate lets us."`
}

const (
	// keepAlive is the default: a dead connection is found within a minute, and a
	// thousand idle ones cost 33 packets a second.
	keepAlive = 30 * time.Second
	// sessionExpiry is the default: a box that is carried to another room, or is
	// off over night, misses nothing.
	sessionExpiry = 24 * time.Hour
)

func defaults() Config {
	return Config{QoS: 1, Version: version5, KeepAlive: channel.Duration(keepAlive), SessionExpiry: channel.Duration(sessionExpiry)}
}
