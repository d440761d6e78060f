package app

import (
	"encoding/json"
	"strings"
	"time"

	"leasehold/channel/mqtt/mqttfake"
	"leasehold/channel/sse/ssefake"
	"leasehold/channel/websocket/websocketfake"
)

// webSocketPlatform is a fake WebSocket service.
type webSocketPlatform struct{ *websocketfake.Server }

func fakeWebSocket(tell func(what, id, text string)) platform {
	return webSocketPlatform{websocketfake.New(websocketfake.Options{
		Acked: aboutFakeBot(tell, func(id string) (what, told string) { return fakeAcknowledged, id }),
		Received: func(bot string, m websocketfake.Message) {
			if bot == fakeBot {
				tell(fakeMessageIn, m.ID, m.Text)
			}
		},
		Operated: func(bot string, o websocketfake.Operation) {
			if bot == fakeBot {
				tell(fakeOperation, o.ID, strings.TrimSpace(strings.Join([]string{o.Type, o.Message, o.Text}, " ")))
			}
		},
		Step: aboutFakeBot(tell, func(step string) (what, id string) {
			return map[string]string{websocketfake.StepHello: fakeConnected, websocketfake.StepEnd: fakeDisconnected}[step], ""
		}),
	})}
}

func (w webSocketPlatform) say(id, text string) { w.PushFrame(fakeBot, id, fakeMessage(id, text)) }

// ssePlatform is a fake server of server-sent events.
type ssePlatform struct{ *ssefake.Server }

func fakeSSE(tell func(what, id, text string)) platform {
	return ssePlatform{ssefake.New(ssefake.Options{
		Asked: aboutFakeBot(tell, func(after string) (what, id string) {
			if after == "" {
				return "", ""
			}
			return fakeAcknowledged, after // asking for what follows says that it is kept
		}),
		Step: aboutFakeBot(tell, func(step string) (what, id string) {
			return map[string]string{ssefake.StepAnswer: fakeConnected, ssefake.StepEnd: fakeDisconnected}[step], ""
		}),
	})}
}

func (s ssePlatform) say(id, text string) {
	s.PushEvent(fakeBot, ssefake.Event{ID: id, Data: string(fakeMessage(id, text))})
}

// mqttPlatform is a fake MQTT broker.
type mqttPlatform struct{ *mqttfake.Server }

func fakeMQTT(tell func(what, id, text string)) platform {
	acked := func(id string) (what, told string) { return fakeAcknowledged, id }
	s := mqttfake.New(mqttfake.Options{
		Acked: func(client string, m mqttfake.Message) {
			var said struct{ ID string }
			_ = json.Unmarshal(m.Payload, &said) // what clients publish may be anything
			aboutFakeBot(tell, acked)(client, said.ID)
		},
		Step: aboutFakeBot(tell, func(step string) (what, id string) {
			return map[string]string{mqttfake.StepConnack: fakeConnected, mqttfake.StepEnd: fakeDisconnected}[step], ""
		}),
	})
	s.Session(fakeBot, "devices/"+fakeBot+"/#") // what is typed before the first connection waits for it
	return mqttPlatform{s}
}

func (m mqttPlatform) say(id, text string) {
	m.Publish(mqttfake.Message{Topic: "devices/" + fakeBot + "/lobby", Payload: fakeMessage(id, text), QoS: 1})
}

// fakeMessage is the JSON of a message, as the fakes' own configuration reads it.
func fakeMessage(id, text string) []byte {
	b, err := json.Marshal(map[string]string{
		"type": "message", "id": id, "text": text, "conversation": "lobby", "sender": "ada", "time": time.Now().UTC().Format(time.RFC3339Nano),
	})
	if err != nil {
		panic(err) // strings
	}
	return b
}

// aboutFakeBot tells what a fake's hook means, where it is about fakeBot and means
// anything.
func aboutFakeBot(tell func(what, id, text string), mean func(arg string) (what, id string)) func(bot, arg string) {
	return func(bot, arg string) {
		if bot != fakeBot {
			return
		}
		if what, id := mean(arg); what != "" {
			tell(what, id, "")
		}
	}
}
