package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/internal/human"
)

func (p *program) eventsCommand() *cobra.Command {
	return p.group("events", "List, show, follow and replay events", nil, p.listEvents(), p.showEvent(), p.tailEvents(), p.replayEvents())
}

func (p *program) listEvents() *cobra.Command {
	var installation, kind, before string
	var limit int
	c := &cobra.Command{
		Use: "list", Short: "List events, the newest first", Args: exactly(),
		Example: "  leasehold events list --installation acme --limit 10\n  leasehold events list --json",
		RunE: func(c *cobra.Command, _ []string) error {
			q := filter("installation", installation, "type", kind, "before", before, "limit", strconv.Itoa(limit))
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				page, err := a.Events(ctx, q)
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(page)
				}
				t := newTable("SEQ", "EVENT", "INSTALLATION", "TYPE", "CONVERSATION", "ACCEPTED", "DELIVERIES")
				for _, e := range page.Items {
					t.row(strconv.FormatInt(e.Seq, 10), e.ID, e.Installation, e.Type, human.Short(e.Conversation, 24), human.Ago(e.AcceptedAt), journeys(e.Deliveries))
				}
				t.write(p.Stdout)
				p.more(page.Next)
				return nil
			})
		},
	}
	c.Flags().StringVar(&installation, "installation", "", "only of this installation `id`")
	c.Flags().StringVar(&kind, "type", "", "only of this `type`")
	pageFlags(c, &before, &limit)
	return c
}

// pageFlags are those of every list that is read newest first.
func pageFlags(c *cobra.Command, before *string, limit *int) {
	c.Flags().StringVar(before, "before", "", "go on with what is older than this `seq`")
	c.Flags().IntVar(limit, "limit", 50, "how many, at most 500")
}

// more tells how a list goes on.
func (p *program) more(next string) {
	if next != "" {
		p.hint("there is more: --before %s", next)
	}
}

// journeys is where an event's deliveries stand: app delivered, backup pending.
func journeys(all []admin.Delivery) string {
	var b bytes.Buffer
	for i, d := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", d.Target, d.State)
	}
	return b.String()
}

func (p *program) showEvent() *cobra.Command {
	return &cobra.Command{
		Use: "show EVENT", Short: "Show an event with its body and its deliveries", Args: exactly("EVENT"), Example: "  leasehold events show evt_0000000000007",
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				e, err := a.Event(ctx, args[0])
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(e)
				}
				p.fields("event", e.ID, "seq", strconv.FormatInt(e.Seq, 10), "installation", e.Installation, "type", e.Type, "platform id", e.PlatformID,
					"conversation", e.Conversation, "thread", e.Thread, "occurred", stamp(e.OccurredAt), "accepted", stamp(e.AcceptedAt), "epoch", strconv.FormatInt(e.Epoch, 10))
				for _, d := range e.Deliveries {
					p.line("")
					p.delivery(d)
				}
				var body bytes.Buffer
				if json.Indent(&body, e.Body, "", "  ") == nil {
					p.line("\n%s", body.String())
				}
				return nil
			})
		},
	}
}

func (p *program) tailEvents() *cobra.Command {
	var installation, kind, after string
	var count int
	c := &cobra.Command{
		Use: "tail", Short: "Follow events as they are accepted, until interrupted", Args: exactly(),
		Example: "  leasehold events tail\n  leasehold events tail --after 1000 --json | jq .body.text",
		RunE: func(c *cobra.Command, _ []string) error {
			q := filter("installation", installation, "type", kind, "after", after, "body", "true")
			return p.reach(c.Context(), running, func(ctx context.Context, a *admin.Client) error {
				lost := func(err error) { p.hint("the stream was cut (%v); coming back", err) }
				see := func(e admin.Event) error {
					if err := p.tailed(e); err != nil {
						return err
					}
					if count--; count == 0 {
						return errEnough
					}
					return nil
				}
				if err := a.Tail(ctx, q, see, lost); !errors.Is(err, errEnough) {
					return err
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&installation, "installation", "", "only of this installation `id`")
	c.Flags().StringVar(&kind, "type", "", "only of this `type`")
	c.Flags().StringVar(&after, "after", "", "begin after this `seq` instead of now")
	c.Flags().IntVar(&count, "count", 0, "end after so many events")
	return c
}

var errEnough = errors.New("enough events")

// tailed writes one line for an event.
func (p *program) tailed(e admin.Event) error {
	if p.json {
		b, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("write JSON: %w", err)
		}
		p.line("%s", b)
		return p.written()
	}
	var body channel.Event
	_ = json.Unmarshal(e.Body, &body) // of another version: shown without its text
	p.line("%s  %s  %s  %s  %s", e.AcceptedAt.UTC().Format(time.TimeOnly), e.ID, human.Printable(e.Installation), human.Printable(e.Type), human.Short(human.Printable(body.Text), 120))
	return p.written()
}
