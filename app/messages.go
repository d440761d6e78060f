package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/delivery/outbound"
	"leasehold/internal/human"
)

func (p *program) messagesCommand() *cobra.Command {
	return p.group("messages", "List and show what was sent, or is to be", nil, p.listMessages(), p.showMessage())
}

func (p *program) listMessages() *cobra.Command {
	var installation, event, state, before string
	var limit int
	c := &cobra.Command{
		Use: "list", Short: "List messages, the newest first", Args: exactly(),
		Example: "  leasehold messages list --state queued\n  leasehold messages list --installation acme --json",
		RunE: func(c *cobra.Command, _ []string) error {
			q := filter("installation", installation, "event", event, "state", state, "before", before, "limit", strconv.Itoa(limit))
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				page, err := a.Messages(ctx, q)
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(page)
				}
				t := newTable("SEQ", "MESSAGE", "INSTALLATION", "OP", "CONVERSATION", "STATE", "ATTEMPTS", "CREATED", "LAST ERROR")
				for _, m := range page.Items {
					t.row(strconv.FormatInt(m.Seq, 10), m.ID, m.Installation, m.Op, human.Short(m.Conversation, 24), m.State, strconv.Itoa(m.Attempts), human.Ago(m.CreatedAt), human.Short(m.LastError, 80))
				}
				p.painted(t, 5).write(p.Stdout)
				p.more(page.Next)
				return nil
			})
		},
	}
	c.Flags().StringVar(&installation, "installation", "", "only of this installation `id`")
	c.Flags().StringVar(&event, "event", "", "only those that answer this event `id`")
	c.Flags().StringVar(&state, "state", "", "only those that are "+strings.Join(outbound.States, ", "))
	pageFlags(c, &before, &limit)
	return c
}

func (p *program) showMessage() *cobra.Command {
	return &cobra.Command{
		Use: "show MESSAGE", Short: "Show one with its content and its receipt", Args: exactly("MESSAGE"), Example: "  leasehold messages show out_…",
		RunE: func(c *cobra.Command, args []string) error {
			return p.reach(c.Context(), reading, func(ctx context.Context, a *admin.Client) error {
				m, err := a.Message(ctx, args[0])
				if err != nil {
					return err
				}
				if p.json {
					return p.asJSON(m)
				}
				p.showsMessage(m)
				return nil
			})
		},
	}
}

func (p *program) showsMessage(m admin.MessageView) {
	var receipt, expires string
	if m.EndedAt.IsZero() {
		expires = stamp(m.ExpiresAt)
	}
	if m.Receipt != nil {
		receipt = m.Receipt.MessageID
	}
	p.fields("message", m.ID, "seq", strconv.FormatInt(m.Seq, 10), "installation", m.Installation, "op", m.Op, "conversation", m.Conversation,
		"thread", m.Thread, "refers to", m.MessageID, "answers", m.Event, "idempotency key", m.IdempotencyKey, "format", formatOf(m), "state", m.State, "waits for", m.WaitsFor,
		"sent as", receipt, "parts", partsOf(m), "attempts", count(m.Attempts), "last error", m.LastError, "next attempt", stamp(m.NextAttempt),
		"created", stamp(m.CreatedAt), "expires", expires, "ended", stamp(m.EndedAt))
	if m.Text != "" {
		p.line("\n%s", clean(m.Text))
	}
	for _, raw := range []json.RawMessage{m.Native, receiptOf(m)} {
		var shown bytes.Buffer
		if len(raw) > 0 && json.Indent(&shown, raw, "", "  ") == nil {
			p.line("\n%s", shown.String())
		}
	}
}

// partsOf is how many of its parts were sent; "" = it has none.
func partsOf(m admin.MessageView) string {
	if m.Parts == 0 {
		return ""
	}
	sent := 0
	if m.Receipt != nil {
		sent = len(m.Receipt.Parts)
	}
	return fmt.Sprintf("%d of %d sent", sent, m.Parts)
}

// formatOf is how its text is written, where that is worth a line.
func formatOf(m admin.MessageView) string {
	if m.Format == channel.Plain {
		return ""
	}
	return m.Format
}

func receiptOf(m admin.MessageView) json.RawMessage {
	if m.Receipt == nil {
		return nil
	}
	return m.Receipt.Raw
}

// clean is printable that keeps the lines of a text.
func clean(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = human.Printable(l)
		}
	}
	return strings.Join(lines, "\n")
}
