package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"

	"leasehold/internal/echo"
)

// asker asks a person at a terminal. What it asks goes to stderr: stdout is for the
// answer of the command.
type asker struct {
	*program
	lines <-chan string // of stdin; closed at its end
}

// typing reports whether somebody types at stdin.
func (p *program) typing() bool {
	f, ok := p.Stdin.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// errNoMore: the person ended the input, or what stood for one did.
var errNoMore = errors.New("the input ended before the last answer; nothing was changed")

// ask begins to read stdin. The goroutine that reads is not waited for: nothing ends
// a read of a terminal but a key, or the end of the process.
func (p *program) ask(ctx context.Context) *asker {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(p.Stdin); s.Scan(); {
			select {
			case lines <- strings.TrimRight(s.Text(), "\r"):
			case <-ctx.Done():
				return
			}
		}
	}()
	return &asker{p, lines}
}

// line asks for one line; an empty one takes fallback.
func (a *asker) line(ctx context.Context, prompt, fallback string) (string, error) {
	if fallback != "" {
		prompt += " [" + fallback + "]"
	}
	_, _ = io.WriteString(a.Stderr, prompt+": ")
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case text, ok := <-a.lines:
		if !ok {
			return "", errNoMore
		}
		if text = strings.TrimSpace(text); text == "" {
			text = fallback
		}
		return text, nil
	}
}

// secret asks for one line that the terminal does not show.
func (a *asker) secret(ctx context.Context, prompt string) (_ string, err error) {
	in, ok := a.Stdin.(*os.File)
	if !ok {
		return "", errors.New("a secret is asked for at a terminal only")
	}
	restore, err := echo.Off(in)
	if err != nil {
		return "", fmt.Errorf("a secret would be shown here: %w; set its environment variable, or write --set key=file:PATH", err)
	}
	defer func() {
		err = errors.Join(err, restore())
		a.hint("")
	}()
	return a.line(ctx, prompt, "")
}

// yes asks a question that Enter answers with yes.
func (a *asker) yes(ctx context.Context, question string) (bool, error) {
	for {
		answer, err := a.line(ctx, question, "yes")
		if err != nil {
			return false, err
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
	}
}
