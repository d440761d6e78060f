// Package mqtt subscribes to the topics of an MQTT broker, 5 or 3.1.1, and
// publishes to it.
//
// It promises that a message of QoS 1 or 2 is acknowledged only after it is
// stored; that one which the broker sends again, because it did not hear the
// acknowledgement, is the same event, over a restart of ours, too; that two
// messages with equal content are two events; and that a half-open connection is
// noticed within twice keep_alive. It never reconnects by itself.
//
// QoS 0 is as weak as its name: what is sent while we are away is gone. Nor can
// anybody tell what was published while the broker had lost our session; that
// there was such a gap is told as a notice.
//
// The packets are read and written by the codecs of Eclipse Paho, both of them.
// Its clients are not used: each runs goroutines of its own, in which a SUBACK
// with one code too many, or a CONNACK with an authentication method, ends the
// whole process, and a node carries the connections of many.
package mqtt

import (
	"context"
	"errors"
	"net/url"
	"sync/atomic"

	"leasehold/channel"
)

// Spec is the type, under the name mqtt.
//
//nolint:gochecknoglobals // a table entry, never changed
var Spec = channel.Define(channel.Definition[Config]{
	Name:     "mqtt",
	Summary:  "Topics of an MQTT 5 or 3.1.1 broker: devices, sensors, gateways.",
	Can:      channel.Capabilities{Send: true, Native: true},
	Deaf:     2 * keepAlive,
	Default:  defaults,
	New:      newClient,
	Identity: identity,
})

// client is a Channel: one connection for one term.
type client struct {
	plan   *plan
	limits channel.Limits
	live   atomic.Pointer[session] // while it may publish
}

var (
	_ channel.Sender  = (*client)(nil)
	_ channel.Limited = (*client)(nil)
)

func newClient(_ context.Context, c Config) (channel.Channel, error) {
	p, err := newPlan(c)
	if err != nil {
		return nil, err
	}
	return &client{plan: p, limits: channel.Limits{All: c.Rate, Chat: c.ChatRate}}, nil
}

// identity is the broker with the client id, by which it knows a session: of two
// connections with one it closes the older. The default one is of the
// installation and the store, and so nobody else's.
func identity(c Config) string {
	u, err := url.Parse(c.URL)
	if err != nil || c.ClientID == "" {
		return ""
	}
	return address(u) + "/" + c.ClientID
}

// Limits are those of the config: a topic is a conversation.
func (c *client) Limits() channel.Limits { return c.limits }

// Run connects, subscribes, and hears until ctx or the connection ends.
func (c *client) Run(ctx context.Context, link *channel.Link) error {
	pos, err := c.plan.resume(ctx, link)
	if err != nil {
		return err
	}
	conn, err := c.plan.dial(ctx, link)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // however the dial ended, ctx did first
		}
		return err
	}
	return newSession(c.plan, link, conn, pos, c.live.Store).run(ctx)
}

var errNotConnected = errors.New("the broker has not taken our connection")

// Send publishes with QoS 1 and returns once the broker has acknowledged. The
// topic is the message's Conversation, the payload its Native as it is, or else
// its Text. A message that was written and not acknowledged in time has an
// unknown outcome.
func (c *client) Send(ctx context.Context, m channel.Message) (channel.Receipt, error) {
	topic, payload, err := publication(m)
	if err != nil {
		return channel.Receipt{}, channel.Refused(err)
	}
	s := c.live.Load()
	if s == nil {
		return channel.Receipt{}, channel.NotSent(errNotConnected)
	}
	return channel.Receipt{}, s.publish(ctx, topic, payload)
}
