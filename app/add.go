package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"leasehold/admin"
	"leasehold/channel"
	"leasehold/config"
	"leasehold/internal/durable"
	"leasehold/internal/fault"
)

func (p *program) addCommand() *cobra.Command {
	var id string
	var sets []string
	c := &cobra.Command{
		Use: "add TYPE", Short: "Add an installation to the config file", Args: exactly("TYPE"),
		Long: `Add an [[installation]] of a channel type at the end of the config file, which is
made when there is none. The rest of the file stays as it is, byte for byte, and
nothing is written that run would refuse.

On a terminal it asks for what the type needs. With --set or --id it asks nothing:
secrets are then those of the environment (MQTT_PASSWORD for password of mqtt), or
references such as --set password=file:/etc/leasehold/plant.password. A secret
itself is never written into the file.`,
		Example: `  leasehold add websocket
  leasehold add mqtt --id plant --set url=mqtts://broker.example.com --set topics=plant/#`,
		RunE: func(c *cobra.Command, args []string) error {
			added, err := p.add(c.Context(), args[0], id, sets)
			if err != nil {
				return err
			}
			if p.json {
				return p.asJSON(added)
			}
			p.line("added %s %q to %s:%d", added.Type, added.ID, added.File, added.Line)
			for _, f := range added.SecretFiles {
				p.line("its secret is in %s, for its owner alone", f)
			}
			for _, w := range added.Warnings {
				p.hint("warning: %s", w)
			}
			p.line("next: %s", added.NextStep)
			return nil
		},
		ValidArgsFunction: p.completeType,
	}
	c.Flags().StringVar(&id, "id", "", "the installation's `id`; its type, when left out")
	c.Flags().StringArrayVar(&sets, "set", nil, "one of the type's keys, `key=value`; may be repeated, for a list, too")
	return c
}

// added is what an add did.
type added struct {
	ID          string   `json:"id"`
	Type        string   `json:"type"`
	File        string   `json:"file"`
	Line        int      `json:"line"`
	SecretFiles []string `json:"secret_files,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
	NextStep    string   `json:"next_step"`
}

func (p *program) add(ctx context.Context, kind, id string, sets []string) (added, error) {
	d, err := p.draft(ctx, kind, id, sets)
	if err != nil {
		return added{}, err
	}
	f, err := p.addition(d)
	if err != nil {
		return added{}, err
	}
	if len(sets) == 0 && id == "" && p.typing() {
		if err := p.fill(ctx, f); err != nil {
			if ctx.Err() != nil { // asked to stop while asking
				err = errors.New("stopped; nothing was added")
			}
			return added{}, err
		}
	} else {
		if d.id == "" {
			d.id = kind
		}
		d.fromEnvironment(p.Env)
		if lacks := d.lacks(); len(lacks) > 0 {
			return added{}, d.wanting("add", lacks)
		}
	}
	return f.write(ctx)
}

// addition is a draft on its way to the end of a config file.
type addition struct {
	*program
	*draft
	file    string // the config's
	old     []byte // its content; nil = it is not there
	taken   []config.Installation
	secrets []secretFile
}

// secretFile is a secret that was typed, and where it is kept.
type secretFile struct{ path, value string }

// addition reads the file that d goes to. One that is wrong already is not added to:
// what a mistake at its end would be could not be told.
func (p *program) addition(d *draft) (*addition, error) {
	file, err := config.Main(p.source())
	if err != nil {
		return nil, err
	}
	f := &addition{program: p, draft: d, file: file}
	return f, f.read()
}

// read reads the file as it is now.
func (f *addition) read() (err error) {
	switch f.old, err = os.ReadFile(f.file); {
	case errors.Is(err, fs.ErrNotExist):
		f.configFile, f.text = f.file, []byte{}
	case err != nil:
		return fault.Errorf(fault.ReadOnly, "read the config: %w", err)
	default:
		f.configFile, f.text = f.file, f.old
	}
	c, err := f.load()
	if err != nil {
		return err
	}
	f.taken = c.Installations
	return nil
}

// free refuses an id that another installation of the file has.
func (f *addition) free(id string) error {
	i := slices.IndexFunc(f.taken, func(i config.Installation) bool { return i.ID == id })
	if i < 0 {
		return nil
	}
	return fault.Errorf(fault.Conflict, "installation %q is in %s already; choose another --id", id, f.taken[i].Pos)
}

// content is the file with the draft at its end, in the file's own line ends, and
// the line at which the draft begins.
func (f *addition) content() (content []byte, line int, err error) {
	block, err := f.block()
	if err != nil {
		return nil, 0, err
	}
	var b bytes.Buffer
	b.Write(f.old)
	end := "\n"
	if bytes.Contains(f.old, []byte("\r\n")) {
		end = "\r\n"
		block = strings.ReplaceAll(block, "\n", end)
	}
	if len(f.old) > 0 {
		if !bytes.HasSuffix(f.old, []byte("\n")) {
			b.WriteString(end)
		}
		b.WriteString(end)
	}
	line = bytes.Count(b.Bytes(), []byte("\n")) + 1
	b.WriteString(block)
	return b.Bytes(), line, nil
}

// check reads the file as it would be, as run would. Only what is wrong with the
// draft is told.
func (f *addition) check(ctx context.Context) (*config.Config, error) {
	if err := f.free(f.id); err != nil {
		return nil, err
	}
	content, _, err := f.content()
	if err != nil {
		return nil, err
	}
	f.text = content
	c, err := f.load()
	if err != nil {
		return nil, f.unfit(err)
	}
	resolve := f.resolver(f.logger(c.Log, f.Stderr))
	types, err := channel.NewTypes(resolve, f.Types...)
	if err != nil {
		return nil, err
	}
	_, _, twins := wanted(c, types, nil)
	all, ok := errors.AsType[config.Faults](together(unbuilt(ctx, c, types, resolve), twins))
	if !ok {
		return c, nil
	}
	mine := slices.DeleteFunc(all, func(fault config.Fault) bool { _, ours := f.inWords(fault); return !ours })
	if len(mine) > 0 {
		return nil, f.told(mine)
	}
	return c, nil
}

// unfit tells the draft's own faults, or that the file, which was right without it,
// takes nothing at its end: its installations are an inline list, most often.
func (f *addition) unfit(err error) error {
	told := f.told(err)
	if _, own := errors.AsType[*exitError](told); own {
		return told
	}
	block, _ := f.block() // it was written before
	return fault.Errorf(fault.Conflict, "nothing can be added at the end of %s (%v); write this into it yourself:\n\n%s", f.file, err, block)
}

// write checks the draft, keeps its secrets and replaces the file. It reads the file
// again, in its turn: another add may have written it meanwhile.
func (f *addition) write(ctx context.Context) (_ added, err error) {
	unlock, err := durable.Lock(ctx, f.file)
	if err != nil {
		return added{}, err //nolint:wrapcheck // it says what was being done
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := f.read(); err != nil {
		return added{}, err
	}
	c, err := f.check(ctx)
	if err != nil {
		return added{}, err
	}
	content, line, err := f.content()
	if err != nil {
		return added{}, err
	}
	done := added{ID: f.id, Type: f.kind, File: f.file, Line: line}
	defer func() {
		if err != nil {
			for _, path := range done.SecretFiles {
				err = errors.Join(err, os.Remove(path))
			}
		}
	}()
	for _, s := range f.secrets {
		if err := keepSecret(s); err != nil {
			return added{}, err
		}
		done.SecretFiles = append(done.SecretFiles, s.path)
	}
	if err := durable.Replace(f.file, content, 0o644); err != nil {
		return added{}, fault.Errorf(fault.ReadOnly, "%w; nothing was changed", err)
	}
	resolve := f.resolver(f.logger(c.Log, f.Stderr))
	var variables []string
	for _, u := range c.Uses {
		if strings.HasPrefix(u.Key, fmt.Sprintf("installation %q: ", f.id)) {
			if _, err := resolve(u.Kind, u.Name); err != nil {
				done.Warnings = append(done.Warnings, err.Error())
			}
			if u.Kind == "env" && !slices.Contains(variables, u.Name) {
				variables = append(variables, u.Name)
			}
		}
	}
	if len(c.Targets) == 0 {
		done.Warnings = append(done.Warnings, "there is no [[target]] yet: what it hears is kept, and goes to nobody")
	}
	done.NextStep = f.nextStep(ctx, c, variables)
	return done, nil
}

// nextStep is what makes the addition real. What runs already has the environment
// that it was started with, whatever is set here; without a variable that its file
// refers to it refuses the file.
func (f *addition) nextStep(ctx context.Context, c *config.Config, variables []string) string {
	running := admin.Reach(ctx, string(c.Admin.Socket)) == nil
	names := strings.Join(variables, ", ")
	switch {
	case !running && names == "":
		return "leasehold run"
	case !running:
		return fmt.Sprintf("leasehold run, with %s set: a service needs it in its own environment", names)
	case names != "":
		return fmt.Sprintf(`set %s for the service that runs and restart it, or refer to a file instead ({ file = "PATH" }), then: leasehold reload`, names)
	}
	if cmd, _, err := f.root().Find([]string{"reload"}); err == nil && cmd.Name() == "reload" {
		return "leasehold reload"
	}
	return "restart leasehold, which runs"
}

// keepSecret writes a secret into a file of its own that only its owner can read.
func keepSecret(s secretFile) error {
	f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fault.Errorf(fault.Conflict, "%s is there already; remove it, or refer to it with --set KEY=file:%s", s.path, s.path)
	}
	if err != nil {
		return fault.Errorf(fault.ReadOnly, "keep the secret: %w", err)
	}
	_, err = f.WriteString(s.value + "\n")
	if err = errors.Join(err, f.Sync(), f.Close(), durable.SyncDir(filepath.Dir(s.path))); err != nil {
		return fault.Errorf(fault.ReadOnly, "keep the secret: %w", errors.Join(err, os.Remove(s.path)))
	}
	return nil
}
