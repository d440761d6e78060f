package delivery

import (
	"context"
	"log/slog"
)

// logSink writes each event as one log record: for a first look, and for
// programs that read the log.
type logSink struct{ log *slog.Logger }

func (s logSink) Deliver(ctx context.Context, d Delivery) Result {
	s.log.LogAttrs(ctx, slog.LevelInfo, "event",
		slog.String("event", d.EventID), slog.String("type", d.Type), slog.String("installation", d.Installation),
		slog.Any("envelope", jsonText(d.Envelope)))
	return Result{Outcome: Taken}
}

// jsonText is JSON that a JSON handler nests and a text handler prints.
type jsonText []byte

func (t jsonText) MarshalJSON() ([]byte, error) { return t, nil }
func (t jsonText) MarshalText() ([]byte, error) { return t, nil }
func (t jsonText) String() string               { return string(t) }
