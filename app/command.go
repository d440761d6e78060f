package app

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// root is the tree of commands.
func (p *program) root() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "leasehold",
		Short: "Hold one live connection per bot, and hand every message to your program",
		Long: `Leasehold keeps the connections that chat and device platforms want kept open,
one per bot installation, and delivers every message it hears to your program.`,
		Example: `  leasehold run --demo          see it work, without an account or a file
  leasehold run                 run what leasehold.toml says
  leasehold status              how everything is`,
		SilenceUsage: true, SilenceErrors: true, SuggestionsMinimumDistance: 2,
		Args: p.unknown, RunE: func(c *cobra.Command, _ []string) error {
			if version {
				return p.version()
			}
			return c.Help()
		},
	}
	root.Flags().BoolVar(&version, "version", false, "say which version this is, as the command does")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if err := c.ValidateFlagGroups(); err != nil { // before cobra does, and as the caller's mistake
			return usage("%w; see %s --help", err, c.CommandPath())
		}
		return nil
	}
	root.SetFlagErrorFunc(misread)
	flags := root.PersistentFlags()
	flags.StringVar(&p.configFile, "config", "", "the config `file` (else LEASEHOLD_CONFIG, ./leasehold.toml, the user's, the system's)")
	flags.StringVar(&p.dataDir, "data-dir", "", "the data `folder`, instead of node.data_dir")
	flags.StringVar(&p.server, "server", "", "ask the box at this `URL`, with --token-file, and not the one here")
	flags.StringVar(&p.tokenFile, "token-file", "", "the `file` with the token for --server")
	flags.BoolVar(&p.json, "json", false, "write JSON, for programs")
	root.AddCommand(
		p.runCommand(), p.addCommand(), p.checkCommand(), p.reloadCommand(), p.applyCommand(), p.statusCommand(), p.installationsCommand(), p.typesCommand(), p.eventsCommand(),
		p.deliveriesCommand(), p.traceCommand(), p.sendCommand(), p.replyCommand(), p.callCommand(), p.messagesCommand(), p.tasksCommand(), p.backupCommand(), p.restoreCommand(), p.storeCommand(), p.migrateCommand(), p.doctorCommand(),
		p.nodesCommand(), p.targetsCommand(), p.keysCommand(), p.secretsCommand(), p.tokensCommand(), p.fakeCommand(), p.versionCommand(), exitCodesTopic(),
	)
	root.InitDefaultCompletionCmd()
	return root
}

// group is a command that holds others. By itself it is its list, with the list's
// flags; without a list it shows its help.
func (p *program) group(use, short string, aliases []string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: use, Aliases: aliases, Short: short, Args: p.unknown, SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, _ []string) error {
			if p.json {
				return usage("%s needs a command; see %s --help", c.CommandPath(), c.CommandPath())
			}
			return c.Help()
		},
	}
	for _, c := range commands {
		if c.Name() == "list" {
			g.RunE, g.Example = c.RunE, c.Example
			g.Flags().AddFlagSet(c.Flags())
		}
	}
	g.AddCommand(commands...)
	return g
}

// exactly wants as many arguments as there are names, none of them empty.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return filled(c, args)
		}
		want := "no argument"
		if len(names) > 0 {
			want = strings.Join(names, " ")
		}
		return usage("%s takes %s (got %d); see %s --help", c.CommandPath(), want, len(args), c.CommandPath())
	}
}

// filled refuses an empty argument: a variable that a script did not set, most often.
func filled(c *cobra.Command, args []string) error {
	if i := slices.Index(args, ""); i >= 0 {
		return usage("argument %d of %s is empty; see %s --help", i+1, c.CommandPath(), c.CommandPath())
	}
	return nil
}

// whole refuses arguments and flags that are not UTF-8: on the way to the program that
// runs they would become others.
func whole(c *cobra.Command, args []string) (err error) {
	for i, arg := range args {
		if !utf8.ValidString(arg) {
			return usage("argument %d of %s is not UTF-8; see %s --help", i+1, c.CommandPath(), c.CommandPath())
		}
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && !utf8.ValidString(f.Value.String()) {
			err = usage("--%s is not UTF-8; see %s --help", f.Name, c.CommandPath())
		}
	})
	return err
}

// line writes one line for people to stdout. Main looks whether it got there.
func (p *program) line(format string, args ...any) {
	_, _ = fmt.Fprintf(p.Stdout, format+"\n", args...)
}

// hint writes one line beside the answer, so that it does not get into a pipe.
func (p *program) hint(format string, args ...any) {
	_, _ = fmt.Fprintf(p.Stderr, format+"\n", args...)
}
