package websocket_test

import (
	"testing"
	"testing/synctest"

	"leasehold/channel"
	"leasehold/channel/channeltest"
	"leasehold/channel/websocket"
	"leasehold/channel/websocket/websocketfake"
)

const (
	platform = "platform.test:80"
	bot      = "a"
	token    = channeltest.Token
)

// world is a stage with a fake platform.
type world struct {
	*channeltest.Stage
	fake *websocketfake.Server
}

// bubble runs f inside a synctest bubble with a world of its own. When f returns
// the platform closes; a goroutine that is left then fails the test.
func bubble(t *testing.T, o websocketfake.Options, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, o)
		defer w.Close()
		f(w)
	})
}

func newWorld(t *testing.T, o websocketfake.Options) *world {
	t.Helper()
	fake := websocketfake.New(o)
	var ref map[string]string
	if o.Token != nil {
		ref = channeltest.Ref()
	}
	return &world{channeltest.NewStage(t, websocket.Spec, fake, platform, bot, fake.Config("ws://"+platform, bot, ref)), fake}
}

func build(config map[string]any) (channel.Channel, error) {
	return channeltest.Build(websocket.Spec, config)
}

// start runs one term.
func (w *world) start() *channeltest.Bench {
	w.T.Helper()
	return w.Start(w.Channel())
}

// connected runs one term and waits until it is ready and quiet.
func (w *world) connected() *channeltest.Bench {
	w.T.Helper()
	return w.Connect(w.Channel())
}

func (w *world) lastConnection() websocketfake.Connection {
	w.T.Helper()
	all := w.fake.Connections(bot)
	if len(all) == 0 {
		w.T.Fatal("there was no connection")
	}
	return all[len(all)-1]
}
