package redact

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
)

// Handler returns a slog.Handler that replaces secrets in messages, attributes
// and errors before next sees them. A secret registered after a logger was
// narrowed by With is not replaced in what With was given.
func (r *Redactor) Handler(next slog.Handler) slog.Handler { return handler{r, next} }

type handler struct {
	r    *Redactor
	next slog.Handler
}

func (h handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h handler) Handle(ctx context.Context, rec slog.Record) error {
	clean := slog.NewRecord(rec.Time, rec.Level, h.r.String(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.r.attr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.r, h.next.WithAttrs(h.r.attrs(attrs))}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.r, h.next.WithGroup(name)} }

func (r *Redactor) attrs(in []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(in))
	for i, a := range in {
		out[i] = r.attr(a)
	}
	return out
}

func (r *Redactor) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		v = slog.StringValue(r.String(v.String()))
	case slog.KindGroup:
		v = slog.GroupValue(r.attrs(v.Group())...)
	case slog.KindAny:
		v = r.any(v.Any())
	default: // numbers, booleans and times hold no secret
	}
	return slog.Attr{Key: a.Key, Value: v}
}

// any keeps a value that shows no secret as it is, so that the handler prints it
// in its own way, and turns one that does into its redacted text.
func (r *Redactor) any(x any) slog.Value {
	switch x := x.(type) {
	case nil:
		return slog.AnyValue(x)
	case error:
		return slog.StringValue(r.String(text(x)))
	case []byte:
		return slog.StringValue(r.String(string(x)))
	}
	plain := fmt.Sprintf("%+v", x)
	shown := plain
	if b, err := json.Marshal(x); err == nil { // it follows pointers where %+v does not
		shown += string(b)
	}
	if r.String(shown) == shown {
		return slog.AnyValue(x)
	}
	if clean := r.String(plain); clean != plain {
		return slog.StringValue(clean)
	}
	return slog.StringValue(Placeholder)
}

// text is an error's text; one whose Error panics still gets a line.
func text(err error) string { return fmt.Sprintf("%v", err) }
