package exec

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"leasehold/channel"
	"leasehold/internal/child"
)

const (
	// maxShown is how many bytes are kept of what a program says to people: a few
	// sentences in a state, a wide line in the log.
	maxShown  = 300
	maxLogged = 2000
	// maxStderr is how much of a line on standard error is looked at. It is more than
	// maxLogged, so that a secret is found that the cut would leave half of.
	maxStderr = 64 << 10

	// linesPerSecond and linesAtOnce bound what a program writes into our log: a
	// stack trace passes, an endless loop does not fill the disk.
	linesPerSecond = 10
	linesAtOnce    = 200
)

// show makes what a program says fit to be shown: one line, at most n bytes,
// without the values of its environment.
func (p *plan) show(said string, n int) string {
	said = strings.ToValidUTF8(said, "\uFFFD")
	said = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, p.redact.String(said))
	said = strings.TrimSpace(said)
	if len(said) <= n {
		return said
	}
	for !utf8.RuneStart(said[n]) {
		n--
	}
	return said[:n] + "…"
}

// chatter writes what a program says to people into our log, and keeps the last
// of it: when the program ends, that is often why.
type chatter struct {
	plan  *plan
	link  *channel.Link
	limit *rate.Limiter

	mu      sync.Mutex // guards what follows
	dropped int
	last    string
}

func newChatter(p *plan, link *channel.Link) *chatter {
	return &chatter{plan: p, link: link, limit: rate.NewLimiter(linesPerSecond, linesAtOnce)}
}

// log writes a line; the text is shown after stream, stderr or log.
func (c *chatter) log(ctx context.Context, level slog.Level, stream, said string) {
	said = c.plan.show(said, maxLogged)
	if said == "" {
		return
	}
	c.mu.Lock()
	c.last = said
	allowed := c.limit.Allow()
	dropped := c.dropped
	c.dropped = 0
	if !allowed {
		c.dropped = dropped + 1
	}
	c.mu.Unlock()
	if !allowed {
		return
	}
	if dropped > 0 {
		c.link.Log().WarnContext(ctx, "program wrote too much", "lines_dropped", dropped)
	}
	c.link.Log().Log(ctx, level, "program output", "stream", stream, "text", said)
}

// remember keeps what the program said of itself, and returns it as it may be
// shown.
func (c *chatter) remember(said string) string {
	said = c.plan.show(said, maxShown)
	if said != "" {
		c.mu.Lock()
		c.last = said
		c.mu.Unlock()
	}
	return said
}

// hear reads standard error until it ends. The program never waits for us here.
func (c *chatter) hear(ctx context.Context, in *child.Lines) {
	for {
		b, size, err := in.Next(func() {})
		if size > 0 {
			c.log(ctx, slog.LevelInfo, "stderr", string(b))
		}
		if err != nil {
			return
		}
	}
}

// lastWords are the last line that the program said to people; "" = none.
func (c *chatter) lastWords() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.plan.show(c.last, maxShown)
}

// level reads a level as programs name it; what it does not know is info.
func level(name string) slog.Level {
	switch strings.ToLower(name) {
	case "debug", "trace":
		return slog.LevelDebug
	case "warn", "warning":
		return slog.LevelWarn
	case "error", "fatal", "critical":
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}
