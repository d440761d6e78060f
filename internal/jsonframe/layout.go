package jsonframe

import "time"

// MaxType is how many bytes a type may have before it counts as unknown.
const MaxType = 64

// Layout says where a message holds what an event is made of. A nil pointer is
// one that is not configured.
type Layout struct {
	ID, Cursor, Type, Time, Conversation, Thread, Sender, Text Pointer
}

// Fields are what a Layout finds in a message; zero = not there.
type Fields struct {
	Type                               string
	Time                               time.Time
	Conversation, Thread, Sender, Text string
	HasText                            bool
}

// ParseLayout reads pointers by the names of their keys: id, cursor, type, time,
// conversation, thread, sender, text. An empty one is not configured. fault is told
// of each that is none.
func ParseLayout(pointers map[string]string, fault func(key, format string, args ...any)) Layout {
	var l Layout
	for key, to := range map[string]*Pointer{
		"id": &l.ID, "cursor": &l.Cursor, "type": &l.Type, "time": &l.Time,
		"conversation": &l.Conversation, "thread": &l.Thread, "sender": &l.Sender, "text": &l.Text,
	} {
		if pointers[key] == "" {
			continue
		}
		parsed, err := ParsePointer(pointers[key])
		if err != nil {
			fault(key, "%w", err)
		}
		*to = parsed
	}
	return l
}

// Read finds a message's fields. Its type is "" where none is found that is short
// enough to be one.
func (l *Layout) Read(doc []byte) Fields {
	var f Fields
	f.Text, f.HasText = l.text(l.Text, doc)
	if kind, _ := l.text(l.Type, doc); len(kind) <= MaxType {
		f.Type = kind
	}
	f.Conversation, _ = l.text(l.Conversation, doc)
	f.Sender, _ = l.text(l.Sender, doc)
	f.Thread, _ = l.text(l.Thread, doc)
	if at, ok := l.text(l.Time, doc); ok {
		f.Time = ParseTime(at)
	}
	return f
}

// text is the scalar at a pointer as text, true when there is one.
func (l *Layout) text(at Pointer, doc []byte) (string, bool) {
	raw := at.Scalar(doc)
	if raw == nil {
		return "", false
	}
	return Text(raw), true
}
