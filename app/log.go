package app

import (
	"io"
	"log/slog"

	"github.com/lmittmann/tint"

	"leasehold/config"
)

// logger writes to w what [log] says: text with colors for a terminal, JSON lines
// for everything else. Secrets are taken out before anything is formatted.
func (p *program) logger(c config.Log, w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil { // config.Load has refused it
		level = slog.LevelInfo
	}
	var h slog.Handler
	if c.Format == "text" || c.Format == "auto" && terminal(w) {
		h = tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: "15:04:05.000Z07:00", ReplaceAttr: utc, NoColor: !p.colorful(w)})
	} else {
		h = slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: utc})
	}
	return slog.New(p.redact.Handler(h))
}

// utc keeps local time, and its changes, out of the log.
func utc(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}
