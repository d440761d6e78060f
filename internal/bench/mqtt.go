package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"golang.org/x/sync/errgroup"

	"leasehold/internal/loop"
)

const (
	mqttTopics  = 20
	mqttBurst   = 500 // messages on each topic in a round
	mqttPayload = `{"seq":%d,"value":21.5,"unit":"C","at":"2026-11-30T09:12:44.381Z","sensor":"hall 3, shelf 12"}`
)

// mqttRestRows measures what connections to one broker cost at rest: what is
// written, the memory, and the work.
func mqttRestRows(ctx context.Context, b *bench) (rows []row, err error) {
	broker, err := b.startMosquitto(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, broker.stop()) }()
	sizes := []int{few, many}
	seen := make([]mqttRest, len(sizes))
	g, together := errgroup.WithContext(ctx)
	for i, bots := range sizes {
		g.Go(func() (err error) {
			if seen[i], err = b.watchMQTT(together, broker, bots); err != nil {
				return fmt.Errorf("%d installations: %w", bots, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	at, less := seen[1], seen[0]
	perLink := float64(at.memory-less.memory) / (many - few)
	return []row{{
		what:     fmt.Sprintf("written in %.0f s at rest, %s mqtt connections", b.rest.Seconds(), count(many)),
		measured: fmt.Sprintf("%s, %d files changed", size(float64(at.bytes)), at.changed),
		target:   "0 B, 0 files", verdict: judge(at.bytes == 0 && at.changed == 0),
	}, {
		what: "memory of an mqtt connection at rest", measured: size(perLink),
		beside: fmt.Sprintf("%s at %s, %s at %d", size(float64(at.memory)), count(many), size(float64(less.memory)), few),
		ratio:  fmt.Sprintf("%.2f", perLink/perLinkMax), target: "< " + size(perLinkMax), verdict: judge(perLink < perLinkMax),
	}, {
		what: fmt.Sprintf("work of %s mqtt connections at rest", count(many)), measured: fmt.Sprintf("%.2f %% of a CPU", 100*at.work),
		beside: fmt.Sprintf("the broker's, for %s: %.2f %%", count(many+few), 100*at.broker), ratio: fmt.Sprintf("%.2f", at.work/at.broker),
	}}, nil
}

// mqttRest is what was seen of a node at rest.
type mqttRest struct {
	bytes, memory int64
	changed       int
	work, broker  float64 // of a CPU
}

func (b *bench) watchMQTT(ctx context.Context, broker *mosquitto, bots int) (seen mqttRest, err error) {
	s := setup{bots: bots, install: func(i int) map[string]any {
		return map[string]any{"url": "mqtt://" + broker.address, "topics": []string{"rest/" + bot(i) + "/#"}, "client_id": fmt.Sprintf("rest-%d-%s", bots, bot(i))}
	}}
	err = b.withBroker(ctx, s, func(n *node) error {
		if err := n.quiet(ctx); err != nil {
			return err
		}
		before, err := mqttCounters(n, broker)
		if err != nil {
			return err
		}
		files, err := fingerprint(n.data)
		if err != nil {
			return err
		}
		b.note("mqtt rest: %d connections are up; watching for %v", bots, b.rest)
		if err := loop.Sleep(ctx, b.rest); err != nil {
			return err
		}
		after, err := mqttCounters(n, broker)
		if err != nil {
			return err
		}
		now, err := fingerprint(n.data)
		if err != nil {
			return err
		}
		memory, err := rss(n.pid())
		share := func(a, b time.Duration) float64 { return (b - a).Seconds() / after.at.Sub(before.at).Seconds() }
		seen = mqttRest{after.written - before.written, memory, different(files, now), share(before.ours, after.ours), share(before.theirs, after.theirs)}
		return err
	})
	return seen, err
}

// counters at a time.
type counters struct {
	at           time.Time
	written      int64
	ours, theirs time.Duration // CPU
}

func mqttCounters(n *node, broker *mosquitto) (c counters, err error) {
	c.at = time.Now()
	var errs [3]error
	c.written, errs[0] = written(n.pid())
	c.ours, errs[1] = worked(n.pid())
	c.theirs, errs[2] = worked(broker.pid())
	return c, errors.Join(errs[:]...)
}

// mqttThroughRows measures the way from a broker to a webhook beside the program that
// a person would write: a client that posts what it hears. The ratio is to the faster
// one of two such programs.
func mqttThroughRows(ctx context.Context, b *bench) (rows []row, err error) {
	broker, err := b.startMosquitto(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, broker.stop()) }()
	r, err := newReceiver(ctx)
	if err != nil {
		return nil, err
	}
	defer r.stop()
	device, err := broker.client("device", nil)
	if err != nil {
		return nil, fmt.Errorf("connect a device: %w", err)
	}
	defer device.Disconnect(100)
	s := setup{bots: 1, program: r.url, install: func(int) map[string]any {
		return map[string]any{"url": "mqtt://" + broker.address, "topics": []string{"through/#"}}
	}}
	var ours, many, one []float64
	err = b.withBroker(ctx, s, func(n *node) error {
		if _, err := b.mqttRound(ctx, device, "through", n, r); err != nil { // connections and code get warm
			return err
		}
		for range max(3, b.count/2) {
			rate, err := b.mqttRound(ctx, device, "through", n, r)
			if err != nil {
				return err
			}
			ours = append(ours, rate)
			for _, x := range []struct {
				atOnce int
				rates  *[]float64
			}{{throughCalls, &many}, {1, &one}} {
				if rate, err = b.plainRound(ctx, broker, device, n, r, x.atOnce); err != nil {
					return err
				}
				*x.rates = append(*x.rates, rate)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	through, together, single := median(ours), median(many), median(one)
	return []row{{
		what: "from a broker to a webhook, one mqtt connection", measured: count(through) + " events/s",
		beside: fmt.Sprintf("a paho client that posts, %d at once: %s/s; one at a time: %s/s", throughCalls, count(together), count(single)),
		ratio:  fmt.Sprintf("%.2f", through/max(together, single)),
	}}, nil
}

// mqttRound has a device publish under a prefix, and returns how many messages per
// second came through to the receiver. Each must come once.
func (b *bench) mqttRound(ctx context.Context, device paho.Client, prefix string, n *node, r *receiver) (float64, error) {
	r.forget()
	began := time.Now()
	var last paho.Token
	const want = mqttTopics * mqttBurst
	for i := range want {
		last = device.Publish(fmt.Sprintf("%s/%d", prefix, i%mqttTopics), 1, false, fmt.Sprintf(mqttPayload, i))
	}
	if err := done(last); err != nil {
		return 0, fmt.Errorf("publish: %w", err)
	}
	err := n.await(ctx, fmt.Sprintf("the last of %d webhooks", want), time.Minute, func() (bool, error) { return r.different() >= want, nil })
	if err != nil {
		return 0, err
	}
	if calls := r.calls.Load(); calls != want {
		return 0, fmt.Errorf("got %d webhooks for %d messages, want each once", calls, want)
	}
	return want / time.Since(began).Seconds(), nil
}

// plainRound does the same with a client that posts what it hears, so many at once,
// and acknowledges a message when it has posted it. It stores nothing.
func (b *bench) plainRound(ctx context.Context, broker *mosquitto, device paho.Client, n *node, r *receiver, atOnce int) (rate float64, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: atOnce}
	defer transport.CloseIdleConnections()
	poster := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	slots := make(chan struct{}, atOnce)
	var number, wrong atomic.Int64
	client, err := broker.client("plain", func(o *paho.ClientOptions) { o.SetOrderMatters(atOnce == 1) })
	if err != nil {
		return 0, fmt.Errorf("connect a client: %w", err)
	}
	defer client.Disconnect(100)
	err = done(client.Subscribe("plain/#", 1, func(_ paho.Client, m paho.Message) {
		slots <- struct{}{}
		defer func() { <-slots }()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(m.Payload()))
		if err != nil {
			wrong.Add(1)
			return
		}
		req.Header.Set("webhook-id", strconv.FormatInt(number.Add(1), 10))
		resp, err := poster.Do(req)
		if err != nil {
			wrong.Add(1)
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body) // it has none
		_ = resp.Body.Close()
	}))
	if err != nil {
		return 0, fmt.Errorf("subscribe a client: %w", err)
	}
	rate, err = b.mqttRound(ctx, device, "plain", n, r)
	if err == nil && wrong.Load() > 0 {
		err = fmt.Errorf("%d posts of the plain client failed", wrong.Load())
	}
	return rate, err
}
