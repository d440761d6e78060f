package app

import (
	"io"
	"log"
	"log/slog"

	"github.com/lmittmann/tint"

	"leasehold/config"
)

// logger writes to w what [log] says: text with colors for a terminal, JSON lines
// for everything else. Secrets are taken out before anything is formatted. Its level
// can be changed by setLevel.
func (p *program) logger(c config.Log, w io.Writer) *slog.Logger {
	p.setLevel(c)
	var h slog.Handler
	if c.Format == "text" || c.Format == "auto" && terminal(w) {
		h = tint.NewTextHandler(w, &tint.Options{Level: &p.level, TimeFormat: "15:04:05.000Z07:00", ReplaceAttr: utc, NoColor: !p.colorful(w)})
	} else {
		h = slog.NewJSONHandler(w, &slog.HandlerOptions{Level: &p.level, ReplaceAttr: utc})
	}
	l := slog.New(p.redact.Handler(h))
	adopt(l)
	return l
}

// setLevel makes log.level hold for every logger of the program.
func (p *program) setLevel(c config.Log) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil { // config.Load has refused it
		level = slog.LevelInfo
	}
	p.level.Set(level)
}

// adopt takes what libraries print through package log, whose default is to write it
// raw to stderr, into l at debug level: net/http quotes there what a server sent
// after its answer, which is neither JSON nor ours to vouch for. The process has one
// such logger, so that the latest l gets it; a command makes one.
func adopt(l *slog.Logger) {
	log.SetFlags(0) // the record has its own time
	log.SetPrefix("")
	log.SetOutput(slog.NewLogLogger(l.Handler(), slog.LevelDebug).Writer())
}

// utc keeps local time, and its changes, out of the log.
func utc(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}
