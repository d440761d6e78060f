package websocketfake

import (
	"fmt"
	"slices"
)

// Post is a message that stands on the platform, as bots have made it.
type Post struct {
	ID, To, Text string
	Edits        int // how often its text was changed
	Deleted      bool
	Reactions    []string // emoji, in the order in which they were added
}

// Operation is what a bot did with a message after it was sent, or beside one.
type Operation struct {
	Type    string `json:"type"`    // edit, delete, react, unreact, typing
	ID      string `json:"id"`      // the bot's own, of the operation
	To      string `json:"to"`      // the conversation
	Message string `json:"message"` // the platform's id of what it is about
	Text    string `json:"text"`    // the new text, or the emoji
	Error   string `json:"-"`       // why the platform did not do it; "" = it did
}

// Posts lists the messages that a bot sent, deleted ones too, in the order they came in.
func (s *Server) Posts(bot string) []Post {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Post, 0, len(b.posts))
	for _, p := range b.posts {
		all = append(all, *p)
		all[len(all)-1].Reactions = slices.Clone(p.Reactions)
	}
	return all
}

// Operations lists what a bot did, in the order it came in, refusals and repeats that
// were not dropped included.
func (s *Server) Operations(bot string) []Operation {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.operations)
}

// Doubles counts what came from a bot under an id of its own that it had used before,
// whether or not the platform dropped it.
func (s *Server) Doubles(bot string) int {
	b := s.bot(bot)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.doubles
}

// operate does what a bot asks for and says why not; "" = it is done. A repeat is
// answered as the first, and dropped, where the platform does that.
func (b *bot) operate(o Operation, dedupes bool) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.IndexFunc(b.operations, func(x Operation) bool { return x.ID == o.ID }); i >= 0 && o.ID != "" {
		b.doubles++
		if dedupes {
			b.repeats++
			return b.operations[i].Error
		}
	}
	o.Error = b.change(o)
	b.operations = append(b.operations, o)
	return o.Error
}

// change makes the change that an operation is. Events are other people's messages:
// they can be reacted to, and no more. b.mu is held.
func (b *bot) change(o Operation) string {
	if o.Type == "typing" {
		return ""
	}
	p := b.post(o.Message)
	theirs := p == nil && b.index(o.Message) >= 0
	if theirs && b.theirs[o.Message] == nil {
		b.theirs[o.Message] = &Post{ID: o.Message, To: o.To}
	}
	if theirs {
		p = b.theirs[o.Message]
	}
	switch {
	case theirs && (o.Type == "edit" || o.Type == "delete"):
		return "message " + o.Message + " is somebody else's"
	case p == nil || p.Deleted:
		return "there is no message " + o.Message
	case p.To != o.To:
		return fmt.Sprintf("message %s is not in %s", o.Message, o.To)
	}
	had := slices.Contains(p.Reactions, o.Text)
	switch {
	case o.Type == "edit":
		p.Text = o.Text
		p.Edits++
	case o.Type == "delete":
		p.Deleted = true
	case o.Type == "react" && had:
		return "the reaction is there already"
	case o.Type == "react":
		p.Reactions = append(p.Reactions, o.Text)
	case !had:
		return "there is no such reaction"
	default:
		p.Reactions = slices.DeleteFunc(p.Reactions, func(emoji string) bool { return emoji == o.Text })
	}
	return ""
}

// post finds what a bot sent by the platform's id; nil = there is none. b.mu is held.
func (b *bot) post(id string) *Post {
	for _, p := range b.posts {
		if p.ID == id {
			return p
		}
	}
	return nil
}
