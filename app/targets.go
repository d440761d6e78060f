package app

import (
	"context"
	"fmt"

	"leasehold/channel"
	"leasehold/config"
	"leasehold/delivery"
	"leasehold/delivery/outbound"
)

// targetsOf are the targets as delivery takes them. One with a header or a variable
// that does not resolve is down until a reload or a restart finds it: without its
// credential every program would refuse it, and each refusal is an attempt.
func targetsOf(c *config.Config, post poster, resolve channel.Resolver) (targets []delivery.Target) {
	deny, _ := delivery.DenyCIDRs(c.Delivery.DenyCIDRs) // config has checked them
	slow := circling(c)
	for _, t := range c.Targets {
		out := delivery.Target{
			Name: t.Name, Kind: t.Type, Off: t.Off, URL: t.URL, Events: t.Events, Kinds: t.Kinds, Match: t.Match,
			Timeout: t.Timeout.Std(), MaxAge: t.MaxAge.Std(), MaxAttempts: t.MaxAttempts,
			Order: delivery.Order(t.Order), Concurrency: t.Concurrency, OnFailure: delivery.OnFailure(t.OnFailure),
			NoRaw: !t.Raw, NoReplies: !t.Replies, CAFile: string(t.CAFile), Headers: map[string]channel.Text{}, Command: t.Command, Env: map[string]channel.Text{},
			Batch: t.Batch, Gzip: t.Gzip, ClientCert: string(t.ClientCert), Deny: deny,
		}
		if t.ClientKey.Kind != "" {
			key, err := resolve(t.ClientKey.Kind, t.ClientKey.Name)
			if err != nil {
				out.Sink = lacking{fmt.Sprintf("client_key: %v", err)}
			}
			out.ClientKey = channel.NewText(key)
		}
		for i, ref := range t.SigningKeys {
			key, err := resolve(ref.Kind, ref.Name)
			if err != nil {
				out.Sink = lacking{fmt.Sprintf("signing_keys[%d]: %v", i, err)} // a signature less could be the one that it knows
				continue
			}
			out.SigningKeys = append(out.SigningKeys, channel.NewText(key))
		}
		if t.Type == "message" {
			var pace *outbound.Pace
			if slow[t.Name] {
				pace = post.pace
			}
			out.Sink = relay(t, post, pace)
		}
		for _, table := range []struct {
			key  string
			from map[string]config.Value
			to   map[string]channel.Text
		}{{"headers", t.Headers, out.Headers}, {"env", t.Env, out.Env}} {
			for name, v := range table.from {
				value, err := v.Resolve(config.Resolver(resolve))
				if err != nil {
					out.Sink = lacking{fmt.Sprintf("%s.%s: %v", table.key, name, err)}
					continue
				}
				table.to[name] = channel.NewText(value)
			}
		}
		targets = append(targets, out)
	}
	return targets
}

func targetNames(c *config.Config) []string {
	names := make([]string, len(c.Targets))
	for i, t := range c.Targets {
		names[i] = t.Name
	}
	return names
}

// lacking is a target that lacks something of its own.
type lacking struct{ what string }

func (l lacking) Deliver(context.Context, delivery.Delivery) delivery.Result {
	return delivery.Result{Outcome: delivery.Down, Reason: l.what, NextStep: "correct that, then run leasehold reload; what waits is delivered then"}
}
