package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/delivery/outbound"
	"leasehold/internal/fault"
	"leasehold/internal/human"
)

func (p *program) sendCommand() *cobra.Command {
	var post admin.Post
	var native string
	var expires, wait spanFlag
	c := &cobra.Command{
		Use: "send INSTALLATION [TEXT]", Short: "Send a message through an installation's connection",
		Long: `Send a message, or with --op edit or delete one, react to one, or show that somebody
types. The message is stored first; whoever holds the installation sends it, once.
With --wait the command ends with 0 when it was sent, with 1 when it was refused,
has expired, or may have been sent, and with 75 when it still waits.`,
		Example: `  leasehold send acme --conversation C02ABC "deployed"
  make deploy 2>&1 | leasehold send acme --conversation C02ABC -
  leasehold send acme --conversation C02ABC --op react --message-id 17 eyes
  leasehold send plant --conversation lamps/1 --native '{"on":true}' --wait 10s`,
		Args: textArgs("INSTALLATION [TEXT]"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := p.content(&post, args[1:], native); err != nil {
				return err
			}
			if expires == 0 && c.Flags().Changed("expires-in") { // over the API that is to leave it out
				return usage("--expires-in: must be from 1s to 30d (got 0s); see %s --help", c.CommandPath())
			}
			post.ExpiresIn = channel.Duration(expires)
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				m, err := a.Post(ctx, args[0], post, time.Duration(wait))
				if err != nil {
					return err
				}
				return p.posted(m, wait > 0)
			})
		},
	}
	postFlags(c, &post, &native, &expires, &wait)
	return c
}

// textArgs takes what is to be named, and perhaps a text.
func textArgs(names string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < 1 || len(args) > 2 {
			return usage("%s takes %s (got %d arguments; put the text in quotes); see %s --help", c.CommandPath(), names, len(args), c.CommandPath())
		}
		if err := whole(c, args); err != nil {
			return err
		}
		return filled(c, args)
	}
}

// postFlags are what is said of a message beside its text.
func postFlags(c *cobra.Command, post *admin.Post, native *string, expires, wait *spanFlag) {
	f := c.Flags()
	f.StringVar(&post.Conversation, "conversation", "", "where to: the platform's `id` of a channel, a chat, a topic")
	f.StringVar(&post.Thread, "thread", "", "into this thread `id` of it")
	f.StringVar(&post.Op, "op", "send", "send, edit, delete, react, unreact or typing")
	f.StringVar(&post.MessageID, "message-id", "", "the `id` of what to edit, delete or react to: the platform's, or that of a message of yours, out_…")
	f.StringVar(&post.Format, "format", channel.Plain, "how the text is written: plain, or markdown, which becomes what the platform reads")
	f.StringVar(native, "native", "", "`JSON` for the platform's own call, or - to read it from stdin")
	f.StringVar(&post.IdempotencyKey, "idempotency-key", "", "a `word` of yours: what was posted with it before is not posted again")
	f.Var(expires, "expires-in", "give up when it could not be sent for so long, up to 30d (default 15m; of typing 10s)")
	f.Var(wait, "wait", "wait so long for what becomes of it, up to 1m")
}

// content fills in what is to be sent.
func (p *program) content(post *admin.Post, text []string, native string) (err error) {
	if len(text) > 0 && text[0] == "-" && native == "-" {
		return usage("text and --native cannot both come from stdin")
	}
	for _, t := range text {
		post.Text = t
		if t == "-" {
			if post.Text, err = p.stdin(); err != nil {
				return err
			}
			post.Text = strings.TrimSuffix(post.Text, "\n")
		}
	}
	if native == "-" {
		if native, err = p.stdin(); err != nil {
			return err
		}
	}
	switch {
	case native == "":
		return nil
	case !json.Valid([]byte(native)):
		return usage("--native is no JSON")
	}
	post.Native = json.RawMessage(native)
	return nil
}

// maxStdin is what a request may have, and more than any platform takes.
const maxStdin = 1 << 20

func (p *program) stdin() (string, error) {
	b, err := io.ReadAll(io.LimitReader(p.Stdin, maxStdin+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read stdin: %w", err)
	case len(b) > maxStdin:
		return "", usage("the request has more than the 1 MiB (%d bytes) that it may have, quotes and names included; send less", maxStdin)
	case !utf8.Valid(b):
		return "", usage("stdin is not UTF-8")
	}
	return string(b), nil
}

// posted tells what became of a message, and ends with what that means to somebody
// who waited for it.
func (p *program) posted(m admin.MessageView, waited bool) error {
	if p.json {
		if err := p.asJSON(m); err != nil {
			return err
		}
	} else {
		p.line("%s  %s", m.ID, says(m))
	}
	if m.State == outbound.Queued.String() {
		if m.WaitsFor != "" {
			p.hint("it waits for %s, until %s", m.WaitsFor, m.ExpiresAt.UTC().Format(time.RFC3339))
		}
	}
	if !waited || m.State == outbound.Sent.String() {
		return nil
	}
	code, next := fault.ExitFailed, "correct what it says, then send it again"
	switch m.State {
	case outbound.Expired.String():
		next = "see leasehold status, then send it again"
	case outbound.Unknown.String():
		next = "look at the platform before you send it again"
	case outbound.Queued.String(), outbound.Sending.String():
		code, next = fault.ExitTemporary, "see leasehold messages show "+m.ID
	}
	return &exitError{code, fmt.Errorf("message %s is %s; %s", m.ID, m.State, next)}
}

// says is a message's state in a few words.
func says(m admin.MessageView) string {
	words := m.State
	if m.Receipt != nil && m.Receipt.MessageID != "" && m.State == outbound.Sent.String() {
		words += " as " + m.Receipt.MessageID
		if more := len(m.Receipt.Parts) - 1; more > 0 {
			words += fmt.Sprintf(" and %d more", more)
		}
	}
	if m.LastError != "" {
		words += ": " + m.LastError
	}
	return human.Printable(words)
}

// spanFlag is a flag that takes a duration, days too.
type spanFlag time.Duration

var errSpan = errors.New("must be a duration such as 30s, 15m or 2d")

// Set reads it.
func (f *spanFlag) Set(s string) error {
	var d channel.Duration
	if err := d.UnmarshalText([]byte(s)); err != nil {
		return errSpan
	}
	*f = spanFlag(d)
	return nil
}

// String writes it; "" for none.
func (f *spanFlag) String() string {
	if *f == 0 {
		return ""
	}
	return strings.TrimSuffix(time.Duration(*f).String(), "0s")
}

// Type is what help calls it.
func (f *spanFlag) Type() string { return "duration" }
