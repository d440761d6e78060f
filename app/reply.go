package app

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/channel"
)

func (p *program) replyCommand() *cobra.Command {
	var post admin.Post
	var native string
	var expires, wait spanFlag
	c := &cobra.Command{
		Use: "reply EVENT [TEXT]", Short: "Answer an event, in its conversation and thread",
		Long: `Answer an event through the installation that heard it: in its conversation and,
where the platform has any, in its thread. EVENT is its id or that of one of its
deliveries. The message is stored first, and sent once, as that of leasehold send.`,
		Example: `  leasehold reply evt_0000000000007 "on it"
  leasehold reply evt_0000000000007 --op react eyes
  make deploy 2>&1 | leasehold reply msg_… --wait 10s -`,
		Args: textArgs("EVENT [TEXT]"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := p.content(&post, args[1:], native); err != nil {
				return err
			}
			in, err := replying(c, post, expires)
			if err != nil {
				return err
			}
			return p.reach(c.Context(), writing, func(ctx context.Context, a *admin.Client) error {
				m, err := a.Reply(ctx, args[0], in, time.Duration(wait))
				if err != nil {
					return err
				}
				return p.posted(m, wait > 0)
			})
		},
	}
	postFlags(c, &post, &native, &expires, &wait)
	c.Flags().Lookup("conversation").Usage = "where to, instead of the event's: the platform's `id`"
	c.Flags().Lookup("thread").Usage = "into this thread `id`, instead of the event's; \"\" is none"
	c.Flags().Lookup("message-id").Usage = "the platform's `id` of what it refers to, instead of the event's; \"\" is none"
	return c
}

// replying is post as an answer: what was not said is the event's.
func replying(c *cobra.Command, post admin.Post, expires spanFlag) (in admin.Reply, err error) {
	saysExpiry := c.Flags().Changed("expires-in")
	if expires == 0 && saysExpiry { // over the API that is to leave it out
		return in, usage("--expires-in: must be from 1s to 30d (got 0s); see %s --help", c.CommandPath())
	}
	in.Op, in.Conversation, in.Text, in.Format = post.Op, post.Conversation, post.Text, post.Format
	in.Native, in.IdempotencyKey = post.Native, post.IdempotencyKey
	if saysExpiry {
		in.ExpiresIn = (*channel.Duration)(&expires)
	}
	if c.Flags().Changed("thread") {
		in.Thread = &post.Thread
	}
	if c.Flags().Changed("message-id") {
		in.MessageID = &post.MessageID
	}
	return in, nil
}
